"""Questions whose scores changed most, with the first hits before and after."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import Ranking, load
from metasearch.search.tune.choice import Choice, Moved
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import results_path

MOST = 10
"""Questions that gained and questions that lost, which are shown."""
_HITS = 3
_LONGEST = 60


@dataclass(frozen=True)
class Shown:
    """A question and the texts of its first hits by the first line and by the step that was chosen."""

    question: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    moved: Moved


def show(run: RunFolder, task: str, choice: Choice) -> list[Shown]:
    """Return the questions that gained most and those that lost most, the greatest changes first."""
    moved, first = choice.moved, choice.standings[0]
    gained = [each for each in moved if each.gain > 0][:MOST]
    lost = [each for each in reversed(moved) if each.gain < 0][:MOST]

    @cache
    def ranking(step: Step, fold: int, pool: str) -> Ranking | None:
        return load(results_path(run, task, step, fold, pool))[0].ranking

    found = []
    for each in (*gained, *lost):
        fold, language, uid = each.place
        base, own = ranking(first.step, fold, first.pool), ranking(choice.kept.step, fold, choice.kept.pool)
        if base and own:
            row = next(i for i, one in enumerate(own.questions) if (one.language, one.id) == (language, uid))
            text = f"{_shortened(own.questions[row].text)} ({language})"
            found.append(Shown(text, _first(base, row), _first(own, row), each))
    return found


def _first(ranking: Ranking, row: int) -> tuple[str, ...]:
    relevant = ranking.relevant[ranking.offsets[row] : ranking.offsets[row + 1]]
    top = ranking.top[row, :_HITS]
    texts = (f"{_shortened(ranking.candidates[i].text)} ({ranking.candidates[i].language})" for i in top)
    return tuple(text + " ✓" * bool(right) for text, right in zip(texts, np.isin(top, relevant), strict=True))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
