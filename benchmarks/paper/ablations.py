"""The ablations of Ding et al. on the multilingual encoder, and which of the paper's orderings hold at its scale.

    python benchmarks/mini/ablations.py --data ~/data -o runs/ablations --plan
    python benchmarks/mini/ablations.py --data ~/data -o runs/ablations --jobs 2
    python benchmarks/mini/ablations.py --data ~/data -o runs/ablations --table

Each arm is one command of the command line, then scored; one that is finished is not run again, one that was stopped
goes on. What two arms have in common, the taught assistant, stages and outputs of frozen encoders, is made once. Rows
are collected in `benchmarks/results/mini_ablations.jsonl`.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what all benchmarks share

from _ablation_tables import Row, arm_rows, arm_table, ordering_rows, ordering_table
from _arms import ARMS, INCLUDE, Places, Steps, check_assignments, flags_of, with_needed
from _plan import plan
from _rates import rates, sentences_of
from _rows import where
from _score import figures

from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
from metasearch.jobs import train
from metasearch.runs.files import write_whole
from metasearch.runs.folder import versions

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "mini_ablations.jsonl"
SAME_SHAPE = {"three-stages": "full", "without-mcl": "full", "single-stage": "full", "ema": "full"}
_TAIL = 15


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the tasks' files.")
@click.option("--corpus", type=click.Path(exists=True, path_type=Path), help="By default the data's `parallel`.")
@click.option("--vocabulary", type=click.Path(exists=True, path_type=Path), help="Assistant before stage 1.")
@click.option("--assistant", type=click.Path(exists=True, path_type=Path), help="Assistant after stage 1.")
@click.option("--only", multiple=True, type=click.Choice(list(ARMS)), help="Arms, with those they need; repeatable.")
@click.option("--max-steps", type=click.IntRange(min=1), default=60, show_default=True, help="Of stages 3 and 4.")
@click.option("--assistant-steps", type=click.IntRange(min=1), default=200, show_default=True, help="Of stage 1.")
@click.option("--embedding-steps", type=click.IntRange(min=1), default=300, show_default=True, help="Of stage 2.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Of a stage in all arms; repeatable.")
@click.option("--jobs", "processes", type=click.IntRange(min=1), default=1, show_default=True, help="At a time.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of each process.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Of sentences per second.")
@click.option("--resamples", type=click.IntRange(min=100), default=2000, show_default=True, help="Of test items.")
@click.option("--plan", "planned", is_flag=True, help="Print what would be run and how long it takes; train nothing.")
@click.option("--minutes", type=float, default=60, show_default=True, help="Of --plan: find the steps that fit.")
@click.option("--table", "shown", is_flag=True, help="Print the tables of what is there; run nothing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the runs.")
def main(
    data: Path,
    corpus: Path | None,
    vocabulary: Path | None,
    assistant: Path | None,
    only: tuple[str, ...],
    max_steps: int,
    assistant_steps: int,
    embedding_steps: int,
    assignments: tuple[str, ...],
    processes: int,
    threads: int,
    rounds: int,
    resamples: int,
    planned: bool,
    minutes: float,
    shown: bool,
    output: Path,
) -> None:
    """Run the arms, score them, and print the two tables."""
    check_assignments(assignments)
    places = placed(output, data, corpus, vocabulary, assistant, assignments)
    steps = Steps(assistant_steps, embedding_steps, max_steps)
    names = with_needed(only or list(ARMS))
    if planned:
        click.echo(plan([name for name in names if not finished(name, places)], steps, places, minutes, processes))
        return
    new = False
    if not shown:
        new = run(names, steps, places, processes, threads)
        new = measure(names, places, rounds, threads) or new
    tables(names, places, resamples, {"steps": asdict(steps), "seed": 0} if new else None)


def placed(
    output: Path,
    data: Path,
    corpus: Path | None,
    vocabulary: Path | None,
    assistant: Path | None,
    assignments: tuple[str, ...],
) -> Places:
    """Return where everything is, by absolute paths; the folder of the runs is made."""
    output.mkdir(parents=True, exist_ok=True)
    return Places(
        output.resolve(),
        (corpus or data / "parallel").resolve(),
        data.resolve(),
        (vocabulary or output / "vocabulary").resolve(),
        assistant.resolve() if assistant else None,
        assignments,
    )


def run(names: Sequence[str], steps: Steps, places: Places, processes: int, threads: int) -> bool:
    """Make the vocabulary, and run and score the arms that are not finished; return whether there were any."""
    left = [name for name in names if not finished(name, places)]
    if left and not places.vocabulary.exists():
        flags = ["--size", "32000", "--lowercase", "--encoder", "minilm", "-o", str(places.vocabulary)]
        _call("vocabulary", ["-m", "metasearch", "tokenizer", str(places.corpus), *flags], places, threads)
    in_order(names, processes, lambda name: one(name, steps, places, threads) if name in left else None)
    return bool(left)


def finished(name: str, places: Places) -> bool:
    """Return whether an arm was run and scored."""
    return (places.folder(name) / "scores" / "report.md").exists()


def in_order(names: Sequence[str], processes: int, act: Callable[[str], None]) -> None:
    """Act on arms, each after those that it needs, some at a time; the first failure ends it when the others are done.

    Args:
        names: of arms; those that one of them needs are among them.
        processes: arms at a time.
        act: on one.
    """
    left, done = list(names), set[str]()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(processes) as pool:
        while left or running:
            ready = [name for name in left if done.issuperset(ARMS[name].needs)]
            for name in ready[: processes - len(running)]:
                running[pool.submit(act, name)] = name
                left.remove(name)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                done.add(running.pop(future))


def one(name: str, steps: Steps, places: Places, threads: int) -> None:
    """Train an arm, or go on with it, and score it."""
    folder, flags = places.folder(name), flags_of(name, steps, places)
    if flags and not (folder / "report.md").exists():
        same_flags(folder.with_suffix(".flags"), flags, folder)
        resumed = (folder / "config.yaml").exists()
        command = ["--resume", str(folder)] if resumed else [*flags, "-o", str(folder)]
        _call(name, ["-m", "metasearch", "distill", *command], places, threads)
    scored = ["--data", str(places.data), "--label", name, "-o", str(folder / "scores")]
    _call(name, [str(HERE / "_score.py"), str(places.model(name)), *scored], places, threads)


def same_flags(path: Path, flags: Sequence[str], folder: Path) -> None:
    """Keep the flags with which a run begins; `ConfigError` where it began with others."""
    said = shlex.join(flags) + "\n"
    if (folder / "config.yaml").exists() and path.is_file() and path.read_text(encoding="utf-8") != said:
        raise ConfigError(f"{folder} was begun with other flags, see {path}; choose another folder with -o")
    write_whole(path, said)


def measure(names: Sequence[str], places: Places, rounds: int, threads: int) -> bool:
    """Measure sentences per second of all shapes together, unless that is done; return whether it was measured."""
    path = places.out / "rates.json"
    shapes = {shape_of(name): places.model(name) for name in reversed(names)}
    if path.is_file() and set(shapes) <= set(json.loads(path.read_text(encoding="utf-8"))):
        return False
    click.echo(f"sentences per second of {', '.join(shapes)}", err=True)
    texts = sentences_of(load_benchmark("tatoeba-11", data=str(places.data), include=[str(INCLUDE)]).split.test)
    found = rates(shapes, texts, rounds, threads)
    write_whole(path, json.dumps(found) + "\n")
    return True


def shape_of(name: str) -> str:
    """Return the arm that is as fast as an arm, since it has as many weights and is as deep."""
    return SAME_SHAPE.get(name, name)


def tables(names: Sequence[str], places: Places, resamples: int, facts: Row | None) -> None:
    """Print the tables of the arms that are finished; with facts of a new run, keep the rows, too."""
    there = [name for name in names if finished(name, places)]
    got = {name: figures(places.folder(name) / "scores", name, resamples) for name in there}
    path = places.out / "rates.json"
    measured = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known = {}
    for name in there:
        sizes = json.loads((places.folder(name) / "scores" / "facts.json").read_text(encoding="utf-8"))
        known[name] = sizes | measured.get(shape_of(name), {})
    arms, orderings = arm_rows(got, known), ordering_rows(got)
    if facts is not None:
        stamp = {**facts, **where(), "versions": versions()}
        train.append_rows(RESULTS, [{**row, **stamp} for row in (*arms, *orderings)])
    click.echo(arm_table(arms, {name: arm.said for name, arm in ARMS.items()}))
    click.echo("\n" + ordering_table(orderings))


def _call(name: str, command: Sequence[str], places: Places, threads: int) -> None:
    """Run a command of Python with a log of its own; a failure ends the ablations and shows the end of its log."""
    log = places.out / f"{name}.log"
    click.echo(f"{name}: {shlex.join(command[:3])} ... > {log}", err=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run([sys.executable, *command], stdout=file, stderr=file, env=environment, check=False)
    if done.returncode:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-_TAIL:])
        raise click.ClickException(f"arm '{name}' ended with exit code {done.returncode}:\n{tail}\nIts log: {log}")


if __name__ == "__main__":
    main()
