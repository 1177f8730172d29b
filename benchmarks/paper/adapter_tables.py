"""The tables of `adaptation`: learners, modes and rates on test, and gains by the number of labelled questions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean

from benchmarks.common.rows import Row
from benchmarks.paper.adapter_cells import CHAIN, LEARNERS, MODES, VARIANTS
from benchmarks.paper.alignment_tables import difference, matching, untrained
from metasearch.evaluation.statistics.paired import clustered_test
from metasearch.runs.markdown import markdown

# Arms of `results/adapter_shots.jsonl`.
SHOTS = (0, 1, 4, 8, 16, 32)
STARTS = ("identity", "fine-tune", "maml", "meta-sgd", "reptile", "reptile long")
CLOSED, OTHERS = "closed form", "closed form of training sites"
UNKNOWN = "closed form without translations of tested pages"
AFTER = {start: f"closed form after {start}" for start in ("fine-tune", "reptile", "reptile long")}
UNKNOWN_AFTER = {start: f"{UNKNOWN}, after {start}" for start in AFTER}
SEEN = {"pages": ("de", "en", "fr"), "lareqa-sentences": ("ar", "de", "el", "hi")}
"""Languages that a start is trained on, by set."""
ARMS = (*STARTS, CLOSED, UNKNOWN, *AFTER.values(), *UNKNOWN_AFTER.values(), OTHERS)
IDENTITY, FINE_TUNE = STARTS[:2]
Tasks = Mapping[tuple[str, str], float]
"""Fold and language → 100 × the mean over seeds of balanced mAP@20."""


def learners_table(rows: Sequence[Row], task: str) -> str:
    """Return test scores in the mode of three sets, and differences from no training, fine-tuning and MAML."""
    own = [row for row in matching(rows, task=task, mode=CHAIN) if row["test"]]
    scores = {variant: by_fold(matching(own, variant=variant)) for variant in VARIANTS}
    against = {"": untrained(own), "fine-tune": scores["fine-tune"], "maml": scores["maml"]}
    lines = [["untouched", "", "", f"{fmean(against[''].values()):.2f}", "", "", ""]]
    for variant, found in scores.items():
        if len(found) == 5:
            cells = ["" if name == variant else difference(found, other) for name, other in against.items()]
            mine = matching(own, variant=variant)
            shares = [row["kd_share"] for row in mine if row["kd_share"] is not None]
            share = f"{100 * fmean(shares):.2g} %" if shares else ""
            seeds = min(Counter(row["fold"] for row in mine).values())
            lines.append([variant, str(seeds), share, f"{fmean(found.values()):.2f}", *cells])
    heads = ["seeds", "λ L_kd / L_task", "score", "Δ vs untouched", "Δ vs fine-tune", "Δ vs maml"]
    return markdown(["test, five folds", *heads], lines, left=1)


def modes_table(rows: Sequence[Row], task: str) -> str:
    """Return the differences from no training in each mode."""
    own = [row for row in matching(rows, task=task) if row["test"]]
    lines = []
    for variant in LEARNERS[:4]:
        found = [by_fold(matching(own, variant=variant, mode=mode)) for mode in (*MODES[task], CHAIN)]
        lines.append([variant, *(difference(each, untrained(own)) for each in found)])
    return markdown(["Δ vs untouched", *MODES[task], CHAIN], lines)


def rates_table(rows: Sequence[Row]) -> str:
    """Return the rates that dev chose in folds 0 to 4."""
    lines = []
    for task in MODES:
        for variant in LEARNERS:
            tested = [row for row in matching(rows, task=task, variant=variant, mode=CHAIN) if row["test"]]
            point = {row["fold"]: row for row in tested}
            shown = [", ".join(f"{point[fold][name] or 0:g}" for fold in sorted(point)) for name in ("outer", "inner")]
            lines.append([task, variant, shown[0], "" if variant == "fine-tune" else shown[1]])
    return markdown(["task", "learner", "outer rate, folds 0 to 4", "inner rate"], lines, left=4)


def by_fold(rows: Sequence[Row]) -> dict[int, float]:
    """Return fold → 100 × the mean over seeds."""
    return {
        fold: 100 * fmean(row["test"]["mean"] for row in matching(rows, fold=fold))
        for fold in sorted({row["fold"] for row in rows})
    }


def shots_table(rows: Sequence[Row], name: str, unseen: bool) -> str:
    """Return the gains of each start over the untouched encoder by shots, of all languages or of those not trained on.

    Tasks are paired; intervals are over folds.
    """
    zero = tasks(rows, name, IDENTITY, 0, unseen)
    lines = [
        [arm, *(gain(tasks(rows, name, arm, k, unseen), zero) if k or arm != IDENTITY else "" for k in SHOTS)]
        for arm in ARMS
        if tasks(rows, name, arm, 0, unseen)
    ]
    return markdown([f"Δ vs untouched, {fmean(zero.values()):.1f}", *(f"{k} shots" for k in SHOTS)], lines)


def starts_table(rows: Sequence[Row], name: str, unseen: bool) -> str:
    """Return the differences of learned starts from other ways to use the same labels."""
    against, lines = (IDENTITY, FINE_TUNE, CLOSED, UNKNOWN), []
    for arm, k in product((*STARTS[1:], *AFTER.values(), *UNKNOWN_AFTER.values()), (0, 8, 32)):
        others = {other: tasks(rows, name, other, k, unseen) for other in against}
        found = tasks(rows, name, arm, k, unseen)
        if not found:
            continue
        lines.append([arm, str(k), *("" if other == arm else gain(found, own) for other, own in others.items())])
    return markdown(["start", "shots", *(f"Δ vs {other}" for other in against)], lines, left=1)


def tasks(rows: Iterable[Row], name: str, arm: str, shots: int, unseen: bool) -> Tasks:
    """Return the scores of an arm."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["set"] == name:
            for language, scores in row.get("scores", {}).get(arm, {}).items():
                if not unseen or language not in SEEN[name]:
                    found.setdefault((row["fold"], language), []).append(100 * scores[str(shots)][1])
    return {task: fmean(values) for task, values in sorted(found.items())}


def gain(one: Tasks, other: Tasks) -> str:
    """Return the mean difference of the tasks that both have, with its interval over folds."""
    both = sorted(one.keys() & other.keys())
    if not both:
        return ""
    test = clustered_test([one[each] for each in both], [other[each] for each in both], [fold for fold, _ in both])
    return f"{test.mean:+.2f}" if test.low is None else f"{test.mean:+.2f} [{test.low:+.2f}, {test.high:+.2f}]"
