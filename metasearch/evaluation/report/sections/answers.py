"""Languages of the answers: do answers in the question's language come first, and are answers in others found?"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from metasearch.evaluation.metrics import retrieval
from metasearch.evaluation.metrics.base import NOT_FOUND, Ranks, Values
from metasearch.evaluation.report.main_table import UNIT, list_heads
from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.sections.languages import figure_cells
from metasearch.evaluation.report.table import Line, Table
from metasearch.evaluation.study.bias import figures_of_arm, mean_of_defined
from metasearch.evaluation.study.study import Arm
from metasearch.runs.per_query_results import DEPTH, Ranking

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


class AnswerFigures(NamedTuple):
    """Where the answers in the language of a question rank, and the answers in others.

    Each is a mean (or median) over questions of a language, then a mean over languages; NaN where it is undefined.

    Attributes:
        own_ndcg, others_recall: nDCG@k of answers in the question's language, recall@k of answers in other languages.
        best_own: how often the best answer is in the question's language; `chance` is 1 / L for L languages.
        median_worst, mean_worst: worst rank of the answers.
        relevant_own, relevant_other, irrelevant_own, irrelevant_other: shares of the four kinds of first candidates.
    """

    own_ndcg: float
    others_recall: float
    best_own: float
    chance: float
    median_worst: float
    mean_worst: float
    relevant_own: float
    relevant_other: float
    irrelevant_own: float
    irrelevant_other: float


def section(inputs: Inputs) -> Section | None:
    """Return the tables of all arms with rankings; None for a task with one language or without rankings."""
    known = {arm: found for arm in inputs.study.arms if (found := figures_of_arm(inputs.study, arm, measure_answers))}
    if all(AnswerFigures(*means).chance == 1 for means, *_ in known.values()):
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
    known: Mapping[Arm, tuple[Values, Values, int]],
    notes: tuple[str, ...],
    scale: float = 100.0,
    unit: str = UNIT,
) -> Table:
    """Return some figures of each arm."""
    heads, own = list_heads(known)
    places = [AnswerFigures._fields.index(name) for name in fields]
    lines = [Line(own[arm], figure_cells(means[places], spreads[places])) for arm, (means, spreads, _) in known.items()]
    columns = tuple(_NAMES[name] for name in fields)
    return Table(key, title, heads, columns, tuple(lines), notes, scale=scale, unit=unit)


def measure_answers(ranking: Ranking, k: int = DEPTH) -> AnswerFigures:
    """Return the figures of a ranking; gains are 1, since a ranking has no grades."""
    ranks = _ranks(ranking)
    asked = np.array([question.language for question in ranking.questions])
    groups = [asked == language for language in dict.fromkeys(asked.tolist())]

    def mean(values: Values) -> float:
        return float(mean_of_defined(np.array([mean_of_defined(values[own]) for own in groups])))

    worst = retrieval.worst_rank(ranks)
    known = (worst[own & ~np.isnan(worst)] for own in groups)
    medians = np.array([np.median(values) if len(values) else np.nan for values in known])
    sides = [(relevant, own) for relevant in (True, False) for own in (True, False)]
    return AnswerFigures(
        mean(retrieval.own_ndcg(ranks, k)),
        mean(retrieval.others_recall(ranks, k)),
        mean(retrieval.best_own(ranks)),
        1 / len(ranking.languages),
        float(mean_of_defined(medians)),
        mean(worst),
        *(mean(retrieval.first_hit(ranks, relevant=relevant, own=own)) for relevant, own in sides),
    )


def _ranks(ranking: Ranking) -> Ranks:
    """Return the ranks of a ranking; a question without a relevant candidate in the pool has one that nobody finds."""
    spoken = np.array([candidate.language for candidate in ranking.candidates])
    asked = np.array([question.language for question in ranking.questions])
    sizes = np.diff(ranking.offsets)
    own = spoken[ranking.relevant] == np.repeat(asked, sizes)
    empty = ranking.offsets[:-1][sizes == 0]
    return Ranks(
        np.insert(ranking.ranks, empty, NOT_FOUND),
        np.concatenate([[0], np.cumsum(np.maximum(sizes, 1))]),
        own=np.insert(own, empty, False),
        first_own=spoken[ranking.top[:, 0]] == asked,
    )
