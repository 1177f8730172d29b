"""The study of the MAML-Align paper with a strong encoder, `e5`.

    python -m benchmarks.paper.strong_encoder --task lareqa-sentences --data ~/data --jobs 2 -o studies/e5
    python -m benchmarks.paper.aligned --task lareqa-sentences --data ~/data -o studies/aligned
    python -m benchmarks.paper.strong_encoder --data ~/data --aligned studies/aligned/model
      --arms aligned,aligned+fine-tune:trans -o studies/e5

Each finished cell adds a row to `results/strong_encoder.jsonl`, and never runs again. An arm such as `maml:trans` is
scored without and with a projection (`neutralise: after`); `neutral+maml:trans` is trained through one (`before`), and
`aligned+maml:trans` from the encoder of `benchmarks.paper.aligned`, which ends in one. The rows of the arms, with
intervals, are added to `results/main_table.jsonl`. A study with other settings (`--set`) needs files of its own for
both kinds of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, read_rows
from benchmarks.paper import cells, strong_tables
from benchmarks.paper.study_rows import first_before
from metasearch.config.measure import REORDERED
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.evaluation.study.read import digest

CELLS, ARM_ROWS = RESULTS / "strong_encoder.jsonl", RESULTS / "main_table.jsonl"
ARMS = (
    "neutral+fine-tune:mixt",
    "neutral+maml:trans",
    "neutral+maml-align:mono-bi-multi",
    "fine-tune:mono-mono",
    "maml:trans",
    "maml-align:mono-bi-multi",
    "maml:mono-mono",
    "maml:mono-bi",
    "reptile:trans",
)
SETS = ("episodes.k=16", "episodes.q=16", "budget.meta_train=24", "budget.meta_valid=8", "budget.meta_batch=2")
"""Over the recipes, whose sets fit tasks of some dozen questions: a set is what InfoNCE tells an answer from."""
TEXTS = 150
"""Of each language, from which a map is fitted; 600 give a tenth of a point more and take four times as long."""


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task.")
@click.option("--arms", default=",".join(ARMS), show_default=True, help="Learners with their modes.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--folds", default="0,1,2,3,4", show_default=True, help="Which folds.")
@click.option("--seeds", default="0", show_default=True, help="Which seeds.")
@click.option("--precision", type=click.Choice(["float32", "bfloat16"]), default="bfloat16", show_default=True)
@click.option(
    "--set", "assignments", multiple=True, default=SETS, show_default=True, metavar="[LEARNER:]KEY=VALUE",
    help="Of recipes; repeatable.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of each process.")
@click.option("--aligned", type=click.Path(exists=True), help="Encoder of the arms `aligned` and `aligned+…`.")
@click.option("--results", type=click.Path(path_type=Path), default=CELLS, help="Rows of cells to add to.")
@click.option("--arm-results", type=click.Path(path_type=Path), default=ARM_ROWS, help="Rows of arms to add to.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the studies.")
def main(
    task: str,
    arms: str,
    data: str,
    folds: str,
    seeds: str,
    precision: str,
    assignments: tuple[str, ...],
    jobs: int,
    threads: int,
    aligned: str | None,
    results: Path,
    arm_results: Path,
    output: Path,
) -> None:
    """Run the cells that have no row, keep their rows, and print the tables of all rows."""
    made = None if aligned is None else Aligned(aligned, load_encoder(aligned).fingerprint)
    shared: list[object] = ["--task", task, "--trim-vocab", "task", "--data", data, "--precision", precision]
    shared += ["--jobs", jobs, "--threads", threads, *(word for each in assignments for word in ("--set", each))]
    for encoder, wanted in _apart([ZERO_SHOT, NEUTRAL, *_checked(arms)], made):
        known = _known(results, task, made)
        for lacking in cells.missing(known, wanted, _numbers(folds), _numbers(seeds)):
            folder = output / f"{task}-{_digest(lacking, made)}"
            _run(lacking, [*shared, "--encoder", encoder], folder, results, made)
    known = _known(results, task, made)
    click.echo(strong_tables.tables(task, data, known, arm_results))
    if in_other := _known(results, task, made, reranked=True):
        click.echo(strong_tables.reranked_table(task, data, known, in_other))


@dataclass(frozen=True)
class Aligned:
    """The encoder of the arms `aligned+…`: its folder, and the fingerprint of its weights."""

    path: str
    weights: str


def _checked(arms: str) -> list[str]:
    """Return the arms that are asked for; a usage error where one is none."""
    named = arms.split(",")
    for arm in named:
        learner, _, mode = _trained(arm).partition(":")
        if arm not in (ZERO_SHOT, NEUTRAL, cells.ALIGNED) and not (learner and mode):
            raise click.UsageError(
                f"arm '{arm}': expected LEARNER:MODE, such as neutral+maml:trans, or {cells.ALIGNED}"
            )
    return named


def _known(results: Path, task: str, aligned: Aligned | None, reranked: bool = False) -> list[Row]:
    """Return the rows of a task in its main pool or in those that rank it otherwise.

    Of aligned encoders they are those of the given one, or of the last one that was kept.
    """
    rows = [row for row in read_rows(results) if row["task"] == task and (row["pool"] in REORDERED) == reranked]
    kept = [row["weights"] for row in rows if row["encoder"] == cells.ALIGNED]
    weights = aligned.weights if aligned else kept[-1] if kept else None
    return [row for row in rows if row["encoder"] != cells.ALIGNED or row["weights"] == weights]


def _apart(arms: Sequence[str], aligned: Aligned | None) -> Iterator[tuple[str, list[str]]]:
    """Yield an encoder and the arms that one study can have: a learner has the same settings in all of its cells."""
    own = [arm for arm in arms if _aligned(arm)]
    if own and aligned is None:
        raise click.UsageError(f"{own[0]} needs --aligned ENCODER; see benchmarks.paper.aligned")
    others = [arm for arm in arms if not _aligned(arm)]
    untrained = [arm for arm in others if arm in (ZERO_SHOT, NEUTRAL)]
    for before in (True, False):
        trained = [arm for arm in others if arm not in untrained and arm.startswith(cells.BEFORE) == before]
        yield cells.ENCODER, untrained + trained
    if aligned and own:
        yield aligned.path, [cells.ALIGNED, *(arm for arm in own if arm != cells.ALIGNED)]


def _aligned(arm: str) -> bool:
    return arm.partition("+")[0] == cells.ALIGNED


def _run(lacking: cells.Missing, shared: list[object], folder: Path, results: Path, aligned: Aligned | None) -> None:
    """Run cells in a study, and keep the rows of those that are finished, also where it is stopped."""
    what: list[object] = ["--folds", f"{','.join(map(str, lacking.folds))},", "--seeds", lacking.seed]
    if _aligned(lacking.arms[0]):
        # The recipes of e5 for an encoder that has another name, and a map of its own.
        pairs = [_trained(arm).split(":") for arm in lacking.arms if arm != cells.ALIGNED]
        recipes = [name if name == cells.BEST else f"{name}-{cells.ENCODER}" for name, _ in pairs]
        named = [f"{recipe}:{mode}" for recipe, (_, mode) in zip(recipes, pairs, strict=True)]
        what += ["--learner", ZERO_SHOT, *(["--recipe", ",".join(named)] if named else [])]
    else:
        learners = [_trained(arm) for arm in lacking.arms]
        for option, best in (("--learner", False), ("--recipe", True)):
            chosen = [name for name in learners if (name.partition(":")[0] == cells.BEST) == best]
            what += [option, ",".join(chosen)] if chosen else []
        what += _maps(lacking.arms)
    try:
        metasearch("crossval", *shared, *what, "-o", folder)
    finally:
        _keep(folder, results, aligned)


def _trained(arm: str) -> str:
    """Return learner and mode of an arm, without what is done before training."""
    return arm.removeprefix(cells.BEFORE).removeprefix(f"{cells.ALIGNED}+")


def _digest(lacking: cells.Missing, aligned: Aligned | None) -> str:
    """Return a name for the folder of a study, the same for the same cells."""
    what = {"arms": ",".join(lacking.arms), "folds": str(lacking.folds), "seed": str(lacking.seed)}
    return digest(what | ({"weights": aligned.weights} if aligned and _aligned(lacking.arms[0]) else {}))


def _maps(arms: Sequence[str]) -> list[str]:
    """Return the settings that give every arm a map, before or after its training."""
    words = []
    for name, when in dict.fromkeys(_when(arm) for arm in arms if arm != ZERO_SHOT):
        key = NEUTRAL if name == NEUTRAL else f"{name}:neutralise"
        words += [] if name == NEUTRAL else ["--set", f"{key}.when={when}"]
        words += ["--set", f"{NEUTRAL}:texts={TEXTS}" if name == NEUTRAL else f"{key}.texts={TEXTS}"]
    return words


def _when(arm: str) -> tuple[str, str]:
    """Return the learner of an arm, and when it has its map."""
    learner = _trained(arm).partition(":")[0]
    return learner, "before" if arm.startswith(cells.BEFORE) else "after"


def _keep(folder: Path, results: Path, aligned: Aligned | None) -> None:
    """Add the rows of a study's finished cells; `ConfigError` where it is of neither encoder."""
    if not any(folder.glob("cells/*/*/report.md")):
        return
    study = ms.read_study([folder])
    encoder = first_before(study).encoder
    named: tuple[str, str | None] = cells.ENCODER, None
    if aligned and Path(encoder).resolve() == Path(aligned.path).resolve():
        named = cells.ALIGNED, aligned.weights
    elif encoder != cells.ENCODER:
        raise ConfigError(f"{folder} is a study of encoder '{encoder}', not of e5 nor of that of --aligned")
    rows = cells.rows_of_pools(study, *named)
    append_new_rows(results, [{**row, **provenance()} for row in rows], cells.identity)


def _numbers(written: str) -> list[int]:
    return [int(word) for word in written.split(",")]


if __name__ == "__main__":
    main()
