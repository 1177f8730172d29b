"""The tables of a study in Markdown, from its rows in `results/main_table.jsonl`."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.paper.cells import BEST, FINE_TUNE, named
from benchmarks.paper.maml_align_paper import GAINS
from benchmarks.paper.widest import widest
from metasearch.evaluation.statistics.folds import TrainingInterval
from metasearch.evaluation.statistics.paired import holm
from metasearch.runs.markdown import markdown

Row = Mapping[str, Any]
LEVEL = "[95 % CI]"


def rows_of_study(rows: Sequence[Row], task: str, encoder: str) -> list[Row]:
    """Return the rows of the last study of a task with an encoder; `ValueError` where there is none.

    Rows of languages, which were kept before there was a row of each arm, are passed over.
    """
    own = [row for row in rows if (row["task"], row["encoder"]) == (task, encoder) and "against" in row]
    if not own:
        raise ValueError(f"no study of {task} with {encoder}")
    last = [row for row in own if row["study"] == own[-1]["study"]]
    return list({(name_of(row), row["mode"]): row for row in last}.values())


def name_of(row: Row) -> str:
    """Return what an arm is called in tables: its learner, and what was done to its encoder first."""
    before = row.get("settings", {}).get("recipe.neutralise.when") == "before"
    # With what follows its learner's name, such as the pool.
    learner = BEST + row["learner"][len(FINE_TUNE) :] if row.get("recipe") == BEST else row["learner"]
    return named(learner, row.get("trained", ""), before)


def summary_table(rows: Sequence[Row]) -> str:
    """Return a line of each arm: mean, difference from zero-shot with both intervals, groups, and language bias."""
    first = rows[0]
    names = list(first["groups"])
    folds = {1: "one fold", 5: "five folds"}.get(count := len(first["folds"]), f"{count} folds")
    changes = {row["label"]: row["against"].get(first["label"]) for row in rows}
    heads = [f"{first['measure']}, {folds}", "mode", "mean", f"Δ vs zero-shot {_over(rows)}", "these models"]
    heads += ["p (Holm)", *(f"{name} languages" for name in names), *(["language bias"] if "bias" in first else [])]
    holm = _holm(changes, len(first["folds"]))
    lines = []
    for row in rows:
        change, less, groups = changes[row["label"]], ["", ""], [""] * len(names)
        if change:
            groups = [f"{100 * change['groups'][name]['difference']:+z.2f}" for name in names]
            less = [_trained(change, len(first["folds"])), _ends(change)]
        mean = _spread(row["mean"], row["sd"], 2)
        bias = [_spread(row["bias"], row["bias_sd"], 1)] if "bias" in row else []
        lines.append([name_of(row), row["mode"] or "", mean, *less, holm.get(row["label"], ""), *groups, *bias])
    return markdown(heads, lines, left=2)


def against_table(rows: Sequence[Row]) -> str:
    """Return what each trained arm has more than each arm that it was compared with, over training."""
    references = [row for row in rows if any(row["label"] in each["against"] for each in rows)]
    heads = [
        f"Δ vs column {LEVEL}",
        "mode",
        *(" ".join(filter(None, (name_of(one), one["mode"]))) for one in references),
    ]
    lines = []
    for row in (each for each in rows if each["mode"]):
        changes = [row["against"].get(one["label"]) for one in references]
        less = [_trained(change, len(row["folds"])) if change else "" for change in changes]
        lines.append([name_of(row), row["mode"] or "", *less])
    return markdown(heads, lines, left=2)


def gains(rows: Sequence[Row]) -> dict[str, str]:
    """Return name of an arm → difference from zero-shot with its interval over training."""
    first = rows[0]
    return {name_of(row): _trained(row["against"][first["label"]], len(first["folds"])) for row in rows[1:]}


def learners_table(studies: Mapping[str, tuple[Sequence[Row], Sequence[tuple[str, str]]]]) -> str:
    """Return the gain of each learner over the encoder before training, a line for each study.

    `studies` is name → rows, and learner and mode of each column. The encoder before training is `neutral` or the first
    row.
    """
    learners = [learner for _, arms in studies.values() for learner, _ in arms]
    heads = ["encoder and loss", *dict.fromkeys(learners)]
    lines = [["the paper, with paragraphs", *(f"{GAINS[learner]:+.1f}" for learner in heads[1:])]]
    for name, (rows, arms) in studies.items():
        before = next((row for row in rows if name_of(row) == "neutral"), rows[0])
        prefix = "neutral+" if name_of(before) == "neutral" else ""
        by_arm = {(name_of(row), row["mode"]): row for row in rows}
        changes = [by_arm[prefix + learner, mode]["against"][before["label"]] for learner, mode in arms]
        lines.append([name, *(_trained(change, len(rows[0]["folds"])) for change in changes)])
    return markdown(heads, lines)


def training_of(change: Row, folds: int) -> TrainingInterval | None:
    """Return the interval over training of a difference; of a row that kept no folds, the widest that it can be."""
    if "training" not in change:
        return widest(change, folds)
    known = change["training"]
    return known and TrainingInterval(**{key: value for key, value in known.items() if key != "holm"})


def _over(rows: Sequence[Row]) -> str:
    """Return what the main intervals of a study are."""
    old = any("training" not in change for row in rows for change in row["against"].values())
    return "[widest 95 % CI]" if old else LEVEL


def _holm(changes: Mapping[str, Row | None], folds: int) -> dict[str, str]:
    """Return label → p of the main interval after Holm's correction; an upper bound where the interval is one."""
    found = {label: training_of(change, folds) for label, change in changes.items() if change}
    adjusted = holm([each.p if each else None for each in found.values()])
    bound = any(change and "training" not in change for change in changes.values())
    return {label: "" if p is None else _p(p, bound) for label, p in zip(found, adjusted, strict=True)}


def _p(p: float, bound: bool = False) -> str:
    return "< 0.0001" if p < 1e-4 else f"{'≤ ' * bound}{p:.2g}"


def _spread(value: float, sd: float | None, decimals: int) -> str:
    return f"{100 * value:z.{decimals}f}" + ("" if sd is None else f" ± {100 * sd:.{decimals}f}")


def _trained(change: Row, folds: int) -> str:
    found = training_of(change, folds)
    ends = {"low": found.low, "high": found.high} if found else {"low": None, "high": None}
    return f"{100 * change['difference']:+z.2f} {_ends(ends)}".rstrip()


def _ends(change: Row) -> str:
    return "" if change["low"] is None else f"[{100 * change['low']:+z.2f}, {100 * change['high']:+z.2f}]"
