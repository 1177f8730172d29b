"""Transfer modes compared, as figure 4 of the MAML-Align paper: learners by modes, the mean over languages of each."""

from metasearch.reports.main_table import UNIT, cell_of, mode_rank, ordered, placed, without_mode
from metasearch.reports.means import What, complete, over_languages, taken_over
from metasearch.reports.table import Cell, Line, Table
from metasearch.study.study import Study


def mode_table(study: Study, what: What, key: str = "modes") -> Table | None:
    """Return learners × modes, mean ± standard deviation, values × 100; None where there are not two modes.

    Args:
        study: what was measured.
        what: which of it.
        key: of the table.
    """
    arms = [arm for arm in ordered(study) if arm.mode and over_languages(study, arm, what)]
    modes = sorted({arm.mode for arm in arms if arm.mode}, key=mode_rank)
    if len(modes) < 2:
        return None
    learners = list(dict.fromkeys(map(without_mode, arms)))
    at = {(without_mode(arm), arm.mode): arm for arm in arms}
    full = complete(study, arms, what)
    columns = []
    for mode in modes:
        own = [at.get((learner, mode)) for learner in learners]
        cells = [cell_of(over_languages(study, arm, what)) if arm else Cell() for arm in own]
        columns.append(placed(cells, [arm in full for arm in own]))
    lines = tuple(Line((learner,), tuple(column[i] for column in columns)) for i, learner in enumerate(learners))
    notes = [f"Mean over languages. {note}" if i == 0 else note for i, note in enumerate(taken_over(study, arms, what))]
    for arm in ordered(study):
        mean = over_languages(study, arm, what) if not arm.mode else None
        if mean:
            notes.append(f"{arm.label} has no mode: {Table('', '', (), (), ()).shown(cell_of(mean))}.")
    return Table(
        key, f"{study.task}: transfer modes, {what}", ("Learner",), tuple(modes), lines, tuple(notes), unit=UNIT
    )
