"""Languages of the answers: do answers in the question's language come first, and are answers in others found?"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from metasearch.evaluation.report.main_table import UNIT, list_heads
from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.sections.languages import figure_cell
from metasearch.evaluation.report.table import Line, Table
from metasearch.evaluation.study.answers import AnswerFigures, measure_answers
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.bias import Values, figures_by_fold, mean_of_defined
from metasearch.runs.per_query_results import DEPTH

ORDER = 42
_NAMES = {
    "own_ndcg": f"own nDCG@{DEPTH}",
    "others_recall": f"recall@{DEPTH} of other languages",
    "best_own": "best answer is own",
    "chance": "1/L",
    "median_worst": "median",
    "mean_worst": "mean",
    "relevant_own": "answer, own",
    "relevant_other": "answer, other",
    "irrelevant_own": "no answer, own",
    "irrelevant_other": "no answer, other",
}


def section(inputs: Inputs) -> Section | None:
    """Return the tables of all arms with rankings; None for a task with one language or without rankings."""
    found = {arm: figures_by_fold(inputs.study, arm, measure_answers) for arm in inputs.study.arms}
    known = {arm: np.array(values) for arm, values in found.items() if values}
    if not known or all(values[:, AnswerFigures._fields.index("chance")].min() == 1 for values in known.values()):
        return None
    over = "Means over the languages of the questions, then over folds; ±: sample standard deviation over folds."
    answers = (
        "Own: in the language of the question. Relevant candidates in other languages keep their ranks, without gain; "
        "all others have gain 1, whatever their grade.",
        "Best answer: the relevant candidate with the best rank. It is own in 1/L of all cases by an encoder that "
        "ignores languages, if each of L languages has one.",
        "Undefined values of a question have no share.",
        over,
    )
    names = AnswerFigures._fields
    tables = (
        _table("answers-found", "Answers in the question's language, and in others", names[:4], known, answers),
        _table("answers-worst", "Worst rank of the answers to a question", names[4:6], known, (over,), 1.0, ""),
        _table("answers-first", "First candidates", names[6:], known, ("The four shares sum to 100.", over)),
    )
    return Section("answers", "Languages of the answers", tables=tables)


def _table(
    key: str,
    title: str,
    fields: Sequence[str],
    known: Mapping[Arm, Values],
    notes: tuple[str, ...],
    scale: float = 100.0,
    unit: str = UNIT,
) -> Table:
    """Return some figures of each arm, from its values `(folds, figures)`."""
    heads, own = list_heads(known)
    places = [AnswerFigures._fields.index(name) for name in fields]
    lines = []
    for arm, values in known.items():
        means = mean_of_defined(values)
        spread = values.std(0, ddof=1) if len(values) > 1 else np.full(len(means), math.nan)
        lines.append(Line(own[arm], tuple(figure_cell(float(means[i]), float(spread[i])) for i in places)))
    columns = tuple(_NAMES[name] for name in fields)
    return Table(key, title, heads, columns, tuple(lines), notes, scale=scale, unit=unit)
