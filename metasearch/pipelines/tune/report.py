"""The report of a tuning."""

from collections.abc import Mapping, Sequence

from metasearch.config.measure import BALANCED, EXPANDED
from metasearch.evaluation.report.build import files
from metasearch.evaluation.report.section import SCORES, Chart, Report, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.pipelines.tune.choice import Choice, interval
from metasearch.version import __version__

OPTIONS: Mapping[str, str] = {BALANCED: " --balance", EXPANDED: " --expand"}
"""Pool → the option of `metasearch search` that ranks in the same way."""
_EXPLAINED = (
    "Each line adds something to the base encoder, the simplest first. Scores and differences are means over the "
    "questions of all held-out folds. The 95 % intervals are over groups of questions that are held out together: "
    "Student's, or Clopper and Pearson's where nearly all groups have the best or the worst score. They do not cover "
    "another training: each fold is trained on once. The kept line is the simplest that no other one beats "
    "significantly. p is of one test against all other lines, corrected for their number (max-T over random signs of "
    "groups, one-sided, 5 %). So with no difference in truth, the base encoder is kept in 95 % of tunings. With few "
    "labels, only large differences are significant."
)
_NESTED = (
    "A choice flatters the scores that it was made on. So the sentence above has scores of folds that did not choose: "
    "what the other folds choose is scored on each fold. {same} The table has each line's own scores on all folds."
)


def build_report(
    sentences: Sequence[str], facts: Mapping[str, str], choice: Choice | None, notes: Sequence[str]
) -> Mapping[str, str]:
    """Return name → text of the files of a report, `report.html` and `report.md` among them; `choice` may be None."""
    sections = []
    if choice:
        explained = [_EXPLAINED]
        if not choice.is_kept(choice.standings[0]):
            explained.append(_NESTED.format(same=_same(choice)))
        sections.append(
            Section(SCORES, "Scores on held-out folds", tuple(explained), (_chart(choice),), (_table(choice),))
        )
    sections.append(Section("notes", "Notes", tuple(notes) or ("Nothing was skipped.",)))
    footer = f"Written by metasearch {__version__}."
    return files(Report("Tuning", tuple(sentences), tuple(facts.items()), tuple(sections), footer))


def _same(choice: Choice) -> str:
    """Return in how many of the folds the same line is chosen."""
    return f"Without one fold, the same line is chosen {choice.folds - len(choice.others)} of {choice.folds} times."


def _table(choice: Choice) -> Table:
    best = choice.best
    lines = [
        Line(
            (str(each) + (" (kept)" if choice.is_kept(each) else ""),),
            (
                Cell(each.mean.mean, place="best" if each == best else ""),
                Cell(text=interval(each.mean, "").partition(" ")[2]),
                Cell(text=interval(each.gain)),
                Cell(text=f"{each.p:.2g}"),
            ),
        )
        for each in choice.standings
    ]
    columns = (choice.measure, "95 %", "against base", "p")
    return Table("steps", f"{choice.measure} by step", ("step",), columns, tuple(lines), unit="× 100", decimals=1)


def _chart(choice: Choice) -> Chart:
    rows = (
        Row(str(each), each.mean.mean, (Interval(each.mean.low, each.mean.high),), interval(each.mean, ""))
        for each in choice.standings
    )
    return Chart("chart", f"{choice.measure} and its interval, × 100", tuple(rows))
