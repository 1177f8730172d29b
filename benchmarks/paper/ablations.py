"""The ablations of Ding et al. on the multilingual encoder, at its scale.

    python -m benchmarks.paper.ablations --data ~/data -o runs/ablations
    python -m benchmarks.paper.ablations --data ~/data -o runs/ablations --table
    python -m benchmarks.paper.ablations --data ~/data --teacher e5 --precision bfloat16 --embedding-steps 500
      --max-steps 500 -o runs/ablations-e5
    python -m benchmarks.paper.ablations --data ~/data --teacher mini --embedding-steps 80 --max-steps 40 --rounds 0
      -o runs/ablations-mini

all-MiniLM-L6-v2 teaches an assistant every language first. With `--teacher e5`, multilingual-e5-small with a projection
teaches, and its assistant is the same with 32,000 words. With `--teacher mini`, `minilm` teaches and `mini` is the
assistant: smaller batches, three languages, and the arms of Tables 5 and 6 and of the EMA teacher.

Each arm is one `metasearch distill`, then scored; the same command continues a stopped study. Arms share stages and
outputs of frozen encoders. Rows are in `benchmarks/results/mini_ablations.jsonl`.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.begun import begin
from benchmarks.common.command import Command, metasearch, module
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows
from benchmarks.mini.assistants import neutralise, words_of_e5
from benchmarks.mini.settings import Settings, Step
from benchmarks.paper.ablation_arms import ARMS, INCLUDE, STUDIES, Places, Steps, flags_of, with_needed
from benchmarks.paper.ablation_scores import arm_rows, difference_rows, figures, score
from benchmarks.paper.ablation_tables import ablation_table
from benchmarks.speed.encoding_rate import rates, sentences_of
from metasearch.errors import ConfigError, require_known
from metasearch.io import atomic_write
from metasearch.runs.versions import versions

SAME_SHAPE = {"three-stages": "full", "without-mcl": "full", "single-stage": "full", "ema": "full"}
"""Arms whose encoders have as many weights and layers as another arm's."""


@click.command(cls=Command)
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the tasks' files.")
@click.option("--corpus", type=click.Path(exists=True, path_type=Path), help="By default the data's `parallel`.")
@click.option("--teacher", type=click.Choice(list(STUDIES)), default="minilm", show_default=True, help="Which study.")
@click.option("--vocabulary", type=click.Path(exists=True, path_type=Path), help="Assistant before stage 1.")
@click.option("--only", multiple=True, type=click.Choice(list(ARMS)), help="Arms, with those they need; repeatable.")
@click.option(
    "--precision", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True, help="Of training."
)
@click.option("--max-steps", type=click.IntRange(min=1), default=60, show_default=True, help="Of stages 3 and 4.")
@click.option(
    "--assistant-steps",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Of stage 1; minilm alone has it.",
)
@click.option("--embedding-steps", type=click.IntRange(min=1), default=300, show_default=True, help="Of stage 2.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of sentences per second.")
@click.option("--rounds", type=click.IntRange(min=0), default=3, show_default=True, help="Of sentences per second.")
@click.option("--table", "only_table", is_flag=True, help="Print the table of finished runs; run nothing.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS / "mini_ablations.jsonl")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the runs.")
def main(
    data: Path,
    corpus: Path | None,
    teacher: str,
    vocabulary: Path | None,
    only: tuple[str, ...],
    precision: str,
    max_steps: int,
    assistant_steps: int,
    embedding_steps: int,
    threads: int,
    rounds: int,
    only_table: bool,
    results: Path,
    output: Path,
) -> None:
    """Run the arms, score them, and print the table."""
    if vocabulary and teacher != "minilm":
        raise click.UsageError(f"--vocabulary is of minilm; the assistant of {teacher} has words of {teacher}")
    output.mkdir(parents=True, exist_ok=True)
    folders = (output, corpus or data / "parallel", data, vocabulary or output / "vocabulary")
    places = Places(*(folder.resolve() for folder in folders), origin=teacher)
    steps = Steps(assistant_steps, embedding_steps, max_steps)
    names = with_needed(checked(only, teacher))
    facts = {"teacher": teacher, "precision": precision, "steps": asdict(steps), "seed": 0}
    new = False
    if not only_table:
        begin(output / "settings.json", facts)
        new = run(names, steps, precision, places)
        new = (bool(rounds) and measure(names, places, rounds, threads)) or new
    table(names, places, results, facts if new else None)


def checked(only: Sequence[str], teacher: str) -> Sequence[str]:
    """Return the arms that are asked for, by default all of a teacher; `ConfigError` for one that it has not."""
    for name in only:
        require_known(f"arm of {teacher}", name, STUDIES[teacher].arms)
    return only or STUDIES[teacher].arms


def run(names: Sequence[str], steps: Steps, precision: str, places: Places) -> bool:
    """Make what teaches, and run and score the arms that are not finished; return whether there were any."""
    unfinished = [name for name in names if not finished(name, places)]
    for step in teachers(places) if unfinished else ():
        if not step.done.exists():
            step.run()
    for name in unfinished:
        train(name, steps, precision, places)
        score(places.model(name), name, str(places.data), places.folder(name) / "scores", places.study.tests)
    return bool(unfinished)


def teachers(places: Places) -> Iterator[Step]:
    """Yield the steps to the teacher, where it is made, and to the assistant before it is taught."""
    if places.origin == "minilm":
        flags = ("--size", 32000, "--lowercase", "--encoder", "minilm", "-o", places.vocabulary)
        yield Step(places.vocabulary, lambda: module("benchmarks.mini.vocabulary", places.corpus, *flags))
        return
    assistant = places.model("assistant")
    if places.origin == "mini":
        # mini has a bottleneck already; this is the same encoder with its whole word table.
        yield Step(assistant, lambda: metasearch("export", "mini", "--sentence-transformers", "-o", assistant))
        return
    settings = Settings(str(places.data), teacher="e5")
    yield from words_of_e5(settings, places.corpus, places.out)
    yield Step(assistant, lambda: neutralise(settings, places.vocabulary, places.corpus, assistant))


def finished(name: str, places: Places) -> bool:
    """Return whether an arm was run and scored."""
    return (places.folder(name) / "scores" / "report.md").exists()


def train(name: str, steps: Steps, precision: str, places: Places) -> None:
    """Train an arm, or go on with it; nothing where its encoder is made by another arm."""
    folder, flags = places.folder(name), flags_of(name, steps, places)
    if flags and not (folder / "report.md").exists():
        flags += ["--precision", precision] if precision != "float32" else []
        same_flags(folder.with_suffix(".flags"), flags, folder)
        begun = (folder / "config.yaml").exists()
        metasearch(*(["resume", folder] if begun else ["distill", *flags, "-o", folder]))


def same_flags(path: Path, flags: Sequence[str], folder: Path) -> None:
    """Keep the flags with which a run begins; `ConfigError` where it began with others."""
    text = shlex.join(flags) + "\n"
    if (folder / "config.yaml").exists() and path.is_file() and path.read_text(encoding="utf-8") != text:
        raise ConfigError(f"{folder} was begun with other flags, see {path}; choose another folder with -o")
    atomic_write(path, text)


def measure(names: Sequence[str], places: Places, rounds: int, threads: int) -> bool:
    """Measure sentences per second of all shapes together, unless that is done; return whether it was measured."""
    path = places.out / "rates.json"
    shapes = {shape_of(name): places.model(name) for name in reversed(names)}
    if path.is_file() and set(shapes) <= set(json.loads(path.read_text(encoding="utf-8"))):
        return False
    click.echo(f"sentences per second of {', '.join(shapes)}", err=True)
    texts = sentences_of(ms.load_benchmark("tatoeba-11", data=str(places.data), include=[str(INCLUDE)]).split.test)
    speeds = rates(shapes, texts, rounds, threads)
    atomic_write(path, json.dumps(speeds) + "\n")
    return True


def shape_of(name: str) -> str:
    """Return the arm that is as fast as an arm, since it has as many weights and is as deep."""
    return SAME_SHAPE.get(name, name)


def table(names: Sequence[str], places: Places, results: Path, facts: Row | None) -> None:
    """Print the table of the arms that are finished; with facts of a new run, keep the rows, too."""
    there = [name for name in names if finished(name, places)]
    study = places.study
    got = {name: figures(places.folder(name) / "scores", name, study.tests) for name in there}
    path = places.out / "rates.json"
    measured = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known = {}
    for name in there:
        sizes = json.loads((places.folder(name) / "scores" / "facts.json").read_text(encoding="utf-8"))
        known[name] = sizes | measured.get(shape_of(name), {})
    arms = arm_rows(got, known, study.tests)
    compared = difference_rows(got, study.against)
    if facts is not None:
        stamp = {**facts, **provenance(), "versions": versions()}
        append_rows(results, [{**row, **stamp} for row in (*arms, *compared)])
    click.echo(ablation_table([*arms, *compared], places.origin))


if __name__ == "__main__":
    main()
