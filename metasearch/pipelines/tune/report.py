"""The report of `metasearch tune`, as a page and in Markdown."""

from collections.abc import Mapping, Sequence

from metasearch import __version__
from metasearch.evaluation.report.build import files
from metasearch.evaluation.report.charts import Estimate, Row, interval_chart
from metasearch.evaluation.report.section import SCORES, Chart, Report, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.tune.choice import Choice, interval


def build_report(
    sentences: Sequence[str], facts: Mapping[str, str], choice: Choice | None, notes: Sequence[str]
) -> Mapping[str, str]:
    """Return name → text of the files of a report; among them `report.html` and `report.md`.

    Args:
        sentences: the result.
        facts: name and value.
        choice: the scores; None where nothing was held out.
        notes: what was skipped and why, and what was noticed in the labels.
    """
    sections = []
    if choice:
        sections.append(
            Section(SCORES, "Scores on held-out folds", (_EXPLAINED,), (_chart(choice),), (_table(choice),))
        )
    sections.append(Section("notes", "Notes", tuple(notes) or ("Nothing was skipped.",)))
    footer = f"Written by metasearch {__version__}."
    return files(Report("Tuning", tuple(sentences), tuple(facts.items()), tuple(sections), footer))


_EXPLAINED = (
    "Each line adds something to the base encoder, the simplest first. Scores and differences are means over the "
    "questions of all held-out folds. The 95 % intervals are Student's, over groups of questions that are held out "
    "together, clipped to possible scores. They do not cover another training: each fold is trained on once. The kept "
    "line is the simplest that is not significantly worse than the best, nor than the best ranking of its step "
    "(one-sided paired tests over the same groups, 5 %, not corrected for the number of lines). With few labels, only "
    "large differences are significant."
)


def _table(choice: Choice) -> Table:
    best = choice.best
    lines = [
        Line(
            (str(each) + (" (kept)" if each == choice.kept else ""),),
            (
                Cell(each.mean.mean, place="best" if each == best else ""),
                Cell(text=interval(each.mean, "").partition(" ")[2]),
                Cell(text=interval(each.gain)),
                Cell(text=f"{each.p:.2g}"),
                Cell(text=f"{each.p_step:.2g}"),
            ),
        )
        for each in choice.standings
    ]
    columns = (choice.measure, "95 %", "against base", "p against best", "p against best of step")
    return Table("steps", f"{choice.measure} by step", ("step",), columns, tuple(lines), unit="× 100", decimals=1)


def _chart(choice: Choice) -> Chart:
    rows = [Row(str(each), (_estimate(each.mean),), interval(each.mean, "")) for each in choice.standings]
    lines = tuple(Line((row.label,), (Cell(text=row.text),)) for row in rows)
    values = Table("chart", f"{choice.measure} and its interval", ("step",), (choice.measure,), lines, unit="× 100")
    return Chart(values, interval_chart(values, rows, f"{choice.measure} × 100", None))


def _estimate(test: PairedTest) -> Estimate:
    low, high = (None if end is None else 100 * end for end in (test.low, test.high))
    return Estimate(100 * test.mean, low, high)
