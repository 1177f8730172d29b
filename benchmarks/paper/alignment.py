"""What the distillation of MAML-Align does: all learners in one arrangement, and larger forms of the term.

    python -m benchmarks.paper.alignment --data ~/data --part curves -o studies/alignment
    python -m benchmarks.paper.alignment --data ~/data --part labels --device cuda -o studies/alignment

Every cell trains `e5` through a projection, in the mode `mono-bi-multi` of `lareqa-sentences`, at a constant rate. Its
row is kept in `results/alignment.jsonl`, and it is not run again. `curves` and `variants` score dev of fold 0 and train
on meta-train alone; `main` and `labels` score test on five folds with three seeds.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

import click

from benchmarks.common.command import Command, metasearch
from benchmarks.common.rows import RESULTS, Row, append_new_rows, read_rows
from metasearch.evaluation.statistics.paired import paired_test
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "alignment.jsonl"
SHARED = ("neutralise.when=before", "neutralise.texts=150", "budget.meta_batch=2", "budget.patience=0")
CONSTANT = ("outer.warmup=0", "outer.decay=none")
LOSSES = {"infonce": (), "margin1": ("loss.name=triplet", "loss.temperature=null", "loss.margin=1.0")}
STEPS = ("1", "2", "4", "8", "16", "32", "64")
RATES = {"infonce": (2e-5,), "margin1": (1e-5, 2e-5, 5e-5)}
_SCORES, _GAP, _FALL = "options.distil=scores", "options.kd_share=0.3", "options.inner_fall=0.3"
VARIANTS = {
    "fine-tune": ("fine-tune-e5",),
    "maml": ("maml-e5",),
    "align": ("maml-align-e5",),
    "align kd=0": ("maml-align-e5", "options.kd_weight=0"),
    "query-only": ("maml-e5", "options.inner_lr=1e-12"),  # fine-tuning on the query sets alone
    "maml fall=0.1": ("maml-e5", "options.inner_fall=0.1"),
    "maml fall=0.3": ("maml-e5", _FALL),
    "align fall=0.3": ("maml-align-e5", _FALL),
    "align gap share=0.3": ("maml-align-e5", _GAP),
    "align gap share=0.3 fall=0.3": ("maml-align-e5", _GAP, _FALL),
    "align scores share=0.3": ("maml-align-e5", _SCORES, _GAP),
    "align scores share=0.3 fall=0.1": ("maml-align-e5", _SCORES, _GAP, "options.inner_fall=0.1"),
    "align scores share=0.3 fall=0.3": ("maml-align-e5", _SCORES, _GAP, _FALL),
    "align scores share=1 fall=0.3": ("maml-align-e5", _SCORES, "options.kd_share=1", _FALL),
    "align embeddings share=0.3 fall=0.3": ("maml-align-e5", "options.distil=embeddings", _GAP, _FALL),
}
PARTS = ("curves", "variants", "main", "labels")


@dataclass(frozen=True)
class Cell:
    """One training: 3/4 of the steps of meta-train and 1/4 of meta-valid, or of meta-train alone for scores on dev."""

    variant: str
    loss: str
    rate: float
    steps: int
    fold: int = 0
    seed: int = 0
    labels: int | None = None
    dev: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What its row is known by."""
        return self.variant, self.loss, self.rate, self.steps, self.fold, self.seed, self.labels, self.dev

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings over the recipe, with two episodes a step."""
        held = 0 if self.dev or self.labels else self.steps // 2
        size = min(16, self.labels or 16)
        sets = (f"episodes.k={size}", f"episodes.q={size}", f"budget.eval_every={int(self.dev)}")
        budget = (f"outer.lr={self.rate}", f"budget.meta_train={2 * self.steps - held}", f"budget.meta_valid={held}")
        few = (f"labels={self.labels}",) if self.labels else ()
        return (*SHARED, *CONSTANT, *sets, *budget, *few, *LOSSES[self.loss], *VARIANTS[self.variant][1:])


def key_of(row: Row) -> tuple[object, ...]:
    """Return what a row is known by; see `Cell.key`."""
    names = ("variant", "loss", "rate", "steps", "fold", "seed")
    return (*(row[name] for name in names), row.get("labels"), bool(row["dev"]))


def cells(part: str) -> Iterator[Cell]:
    """Yield the cells of a part, one seed after the other."""
    learners = ("fine-tune", "maml", "align")
    if part == "curves":
        for learner, rate in product(learners, RATES["margin1"]):
            yield Cell(learner, "margin1", rate, 64, dev=True)
    elif part == "variants":
        for variant, loss in product(list(VARIANTS)[5:], LOSSES):
            yield Cell(variant, loss, 2e-5, 64, dev=True)
    elif part == "main":
        for seed, fold, variant in product(range(3), range(5), [*learners, "align kd=0", "query-only"]):
            yield Cell(variant, "infonce", 2e-5, 64, fold, seed)
            yield Cell(variant, "margin1", 1e-5, 16, fold, seed)
    else:
        for labels, seed, fold, learner in product((8, 32, 128), range(3), range(5), learners):
            yield Cell(learner, "infonce", 2e-5, 16, fold, seed, labels)


@click.command(cls=Command)
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option(
    "--part", "parts", type=click.Choice(PARTS), multiple=True, default=PARTS, help="Which cells; repeatable."
)
@click.option("--encoder", default="e5", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of the runs.")
def main(data: str, parts: Sequence[str], encoder: str, device: str, output: Path) -> None:
    """Run the cells that have no row yet, and print the tables."""
    for cell in (cell for part in parts for cell in cells(part)):
        if cell.key in {key_of(row) for row in read_rows(ROWS)}:
            continue
        folder = output / "-".join(str(value).replace(" ", "-") for value in cell.key)
        chosen = ["--recipe", VARIANTS[cell.variant][0], "--fold", cell.fold, "--seed", cell.seed]
        sets = [word for setting in cell.settings for word in ("--set", setting)]
        where = ["--task", "lareqa-sentences", "--mode", "mono-bi-multi", "--data", data, "--device", device]
        metasearch("train", *where, "--encoder", encoder, *chosen, *sets, "-o", folder)
        append_new_rows(ROWS, [row_of(cell, RunFolder(folder))], key_of)
    for table in (curves_table, variants_table, main_table):
        click.echo(table(read_rows(ROWS)))


def row_of(cell: Cell, files: RunFolder) -> Row:
    """Return the row of a finished run."""
    events, facts = list(files.events()), json.loads((files.path / "facts.json").read_text(encoding="utf-8"))
    mean = [r for r in files.results() if (r["split"], r["measure"], r["pool"]) == ("test", "map@20", "multilingual")]
    scores = {zero: {r["language"]: r["value"] for r in mean if (r["step"] == 0) == zero} for zero in (True, False)}
    named = {name: getattr(cell, name) for name in ("variant", "loss", "rate", "steps", "fold", "seed", "labels")}
    dev = {str(event["step"]): event["dev"] for event in events if "dev" in event} if cell.dev else {}
    cost = {"kd_share": facts.get("kd_share"), "seconds": facts["seconds"], "device": facts["device"]}
    return {**named, "set": cell.settings, "dev": dev, "test": scores[False], "zero_shot": scores[True], **cost}


def curves_table(rows: Sequence[Row]) -> str:
    """Return dev scores by learner, rate and number of steps, with margin 1.0."""
    found = [row for row in rows if set(STEPS) <= row["dev"].keys() and row["loss"] == "margin1"]
    lines = [
        [row["variant"], f"{row['rate']:g}", *(f"{100 * row['dev'][step]:.2f}" for step in ("0", *STEPS))]
        for row in sorted(found, key=lambda row: (row["rate"], list(VARIANTS).index(row["variant"])))
    ]
    return markdown(["dev, margin 1.0", "rate", "0 steps", *STEPS], lines, left=1)


def variants_table(rows: Sequence[Row]) -> str:
    """Return the share of the distillation term and the dev scores of each variant at the rate 2e-5."""
    lines = []
    for variant in VARIANTS:
        found = {r["loss"]: r for r in rows if r["variant"] == variant and r["rate"] == 2e-5 and "64" in r["dev"]}
        if "infonce" in found and "margin1" in found:
            shares = [found[loss].get("kd_share") for loss in LOSSES]
            cells_ = [f"{100 * share:.2g} %" if share is not None else "" for share in shares]
            scores = [f"{100 * found[loss]['dev'][step]:.2f}" for loss in LOSSES for step in ("16", "64")]
            lines.append([variant, cells_[0], *scores[:2], cells_[1], *scores[2:]])
    heads = ["λ L_kd / L_task", "16 steps", "64 steps"]
    return markdown(
        ["dev, rate 2e-5", *(f"{loss}: {h}" for loss in ("InfoNCE", "margin 1.0") for h in heads)], lines, left=1
    )


def main_table(rows: Sequence[Row]) -> str:
    """Return test scores of learners over folds, seeds averaged, and their differences from fine-tuning."""
    chosen = [row for row in rows if not row["dev"] and not row.get("labels")]
    lines = []
    for loss, variant in product(LOSSES, VARIANTS):
        scores = {name: _by_fold(chosen, loss, name) for name in ("fine-tune", variant)}
        if len(scores[variant]) == len(scores["fine-tune"]) == 5:
            test = paired_test(*(list(scores[name].values()) for name in (variant, "fine-tune")))
            less = f"{test.mean:+.2f} [{test.low:+.2f}, {test.high:+.2f}]" if variant != "fine-tune" else ""
            lines.append([variant, loss, f"{fmean(scores[variant].values()):.2f}", less])
    return markdown(["map@20, five folds, three seeds", "loss", "mean", "less fine-tuning [95 %]"], lines, left=2)


def _by_fold(rows: Sequence[Row], loss: str, variant: str) -> dict[int, float]:
    """Return fold → 100 × the mean over seeds, of folds that have three."""
    found: dict[int, list[float]] = {}
    for row in sorted(rows, key=lambda row: row["fold"]):
        if (row["loss"], row["variant"]) == (loss, variant):
            found.setdefault(row["fold"], []).append(100 * row["test"]["mean"])
    return {fold: fmean(values) for fold, values in found.items() if len(values) >= 3}


if __name__ == "__main__":
    main()
