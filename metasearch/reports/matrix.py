"""The language matrix: questions of one language search candidates of one language (LAReQA, section 4)."""

from metasearch.reports.formats import slug
from metasearch.reports.main_table import UNIT, ordered
from metasearch.reports.means import What, by_language, taken_over
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.arms import Arm
from metasearch.study.study import Study

POOLS = ("bilingual", "monolingual")


def matrix_tables(study: Study, measure: str) -> list[Table]:
    """Return a table for each arm; none for a task whose questions do not search one language at a time."""
    if not any(pool in study.pools for pool in POOLS):
        return []
    found = [
        matrix_table(study, arm, measure, f"matrix-{number}-{slug(arm.label)}")
        for number, arm in enumerate(ordered(study), 1)
    ]
    return [table for table in found if table.lines]


def matrix_table(study: Study, arm: Arm, measure: str, key: str) -> Table:
    """Return question languages × candidate languages of an arm, values × 100; the diagonal is monolingual.

    Args:
        study: what was measured.
        arm: whose matrix.
        measure: such as `map@20`.
        key: of the table.
    """
    values: dict[tuple[str, str], float] = {}
    notes: dict[str, None] = {"The diagonal is monolingual; a cell is a mean over questions, seeds and folds.": None}
    for pool in POOLS:
        what = What(measure, pool)
        own = by_language(study, arm, what)
        values |= own
        if own and not any("±" not in note for note in list(notes)[1:]):
            notes |= {note: None for note in taken_over(study, [arm], what) if "±" not in note}
    asked = _in_order(study, [key[0] for key in values])
    searched = _in_order(study, [key[1] for key in values])
    lines = tuple(Line((a,), tuple(Cell(values.get((a, b))) for b in searched)) for a in asked)
    title = f"{study.task}: {measure} of {arm.label}, question language (lines) by candidate language, test"
    return Table(key, title, ("Question",), tuple(searched), lines, tuple(notes), unit=UNIT)


def _in_order(study: Study, languages: list[str]) -> list[str]:
    """Return each language once, in the order of the task."""
    place = {language: number for number, language in enumerate(study.languages)}
    return sorted(dict.fromkeys(languages), key=lambda language: (place.get(language, len(place)), language))
