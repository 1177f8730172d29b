"""The two tables of the ablations, in Markdown, from rows of `results/mini_ablations.jsonl`."""

from collections.abc import Sequence

from benchmarks.common.rows import Row
from benchmarks.paper.ablation_arms import ARMS, STUDIES, TESTS
from benchmarks.paper.distillation_papers import ORDERINGS, Ordering
from metasearch.runs.markdown import markdown

NOTE = (
    "Differences times 100, in parentheses their 95% intervals over test items (paired bootstrap). The paper's means "
    "are over the same pairs of languages where it gives them. One seed: what another seed would change is not in the "
    "intervals, so that `yes` and `no` say which way this one training went."
)
_VERDICTS = ("STS 2017", "Tatoeba", "LAReQA")


def arm_table(rows: Sequence[Row], teacher: str = "minilm") -> str:
    """Return the arms, a line each: scores times 100, sizes, and sentences per second of a processor.

    Args:
        rows: rows of arms by `ablation_rows.arm_rows`; rows of orderings are passed over.
        teacher: the name of their study.
    """
    cells = {(row["study"], row["metric"]): row["value"] for row in rows}
    tests = STUDIES[teacher].tests
    heads = ["arm", "", *tests, "M parameters", "MiB, float32", "MiB, int8", "sentences/s"]
    lines = []
    for arm in dict.fromkeys(row["study"] for row in rows if row["study"] in ARMS):
        scores = [_shown(cells.get((arm, test)), 100) for test in tests]
        facts = [
            _shown(cells.get((arm, "parameters")), 1e-6),
            *(_shown(cells.get((arm, metric)), 1, 1) for metric in ("float32_mib", "int8_mib")),
            _shown(cells.get((arm, "cpu")), 1, 0),
        ]
        lines.append([arm, STUDIES[teacher].description(arm), *scores, *facts])
    return markdown(heads, lines, left=2)


def ordering_table(rows: Sequence[Row], orderings: Sequence[Ordering] = ORDERINGS) -> str:
    """Return the paper's orderings, a line each: its differences, ours beside them, and whether the ordering holds.

    Args:
        rows: rows by `ablation_rows.ordering_rows`.
        orderings: with the paper's figures.
    """
    by_key = {(row["study"], row["metric"]): row for row in rows}
    heads = ["ordering", "paper: STS mono", "cross", "ours: STS mono", "cross", *_VERDICTS, "holds?"]
    lines = []
    for each in orderings:
        if (each.claim, "STS 2017") not in by_key:
            continue
        by_test = {test: by_key[each.claim, test] for test in TESTS}
        paper = [_published(each, part) for part in ("mono", "cross")]
        ours = [f"{100 * by_test[f'STS {part}']['value']:+.1f}" for part in ("mono", "cross")]
        verdicts = ", ".join(f"{test.split()[0]} {by_test[test]['holds']}" for test in _VERDICTS)
        claim = f"{each.claim} ({each.note})" if each.note else each.claim
        lines.append([claim, *paper, *ours, *(_difference(by_test[test]) for test in _VERDICTS), verdicts])
    return markdown(heads, lines) + f"\n\n{NOTE}"


def difference_table(rows: Sequence[Row], teacher: str) -> str:
    """Return the arms of a study that are compared with another, a line each.

    Args:
        rows: rows by `ablation_rows.arm_rows` and `ablation_rows.difference_rows`.
        teacher: the name of the study.
    """
    study = STUDIES[teacher]
    values = {(row["study"], row["metric"]): row for row in rows}
    tests = [test for test in _VERDICTS if test in study.tests]
    lines = []
    for arm in study.arms:
        other = study.against.get(arm)
        if (arm, tests[0]) in values and (not other or (f"{arm} - {other}", tests[0]) in values):
            scores = [_shown(values[arm, test]["value"], 100) for test in tests]
            changes = [_difference(values[f"{arm} - {other}", test]) if other else "" for test in tests]
            beside = f"; baseline {other}" if other else ""
            lines.append([arm, f"{study.description(arm)}{beside}", *scores, *changes])
    return markdown(["arm", "description, baseline", *tests, *(f"Δ {test}" for test in tests)], lines, left=2)


def _published(each: Ordering, part: str) -> str:
    """Return the paper's differences in a part of STS 2017, by its encoders."""
    return ", ".join(
        f"{encoder} {getattr(better, part) - getattr(worse, part):+.1f}"
        for encoder, (better, worse) in each.published.items()
    )


def _difference(row: Row) -> str:
    if row["low"] is None:
        return f"{100 * row['value']:+.1f}"
    return f"{100 * row['value']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"


def _shown(value: float | None, times: float, digits: int = 2) -> str:
    return "" if value is None else f"{times * value:.{digits}f}"
