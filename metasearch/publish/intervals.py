"""Intervals for the card of one run: what other test questions would change, by the bootstrap of `metasearch.study`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metasearch.publish.about import Interval
from metasearch.publish.figures import main_pool
from metasearch.runs.questions import questions_path
from metasearch.runs.rows import Row
from metasearch.study.combined import combine
from metasearch.study.resampled import Figure, figures
from metasearch.study.statistics.bootstrap import interval
from metasearch.study.study import Run, Scored, ScoreSelection

RESAMPLES = 2_000
"""Of the bootstrap: enough for two digits, and little beside a run."""


def intervals(
    folder: Path, config: Mapping[str, Any], rows: Sequence[Row], label: str, before: str | None, measure: str
) -> tuple[Interval, ...]:
    """Return the model's mean over languages on a task's test questions, and what it gained, each with its interval.

    Articles are resampled with all their questions in all languages, for the model and for the encoder as it was alike.
    Seeds and folds are not: one run has one of each.

    Args:
        folder: run folder, which has the results of each question.
        config: of the run, as a tree.
        rows: scores of one task.
        label: the model's `learner` in these rows.
        before: that of the encoder as it was; None where it has no scores.
        measure: such as `map@20`.

    Raises:
        RunFolderError: results of the questions cannot be opened.
        DataError: they are damaged, or not what the scores were computed from.
    """
    task = rows[0]["task"]
    named = [name for name in (label, before) if name is not None]
    if not all(questions_path(folder, task, name, "test").is_file() for name in named):
        return ()
    run = Run(folder, "", config, tuple(rows), {})
    scored = {name: _scored(run, rows, name) for name in named}
    selection = ScoreSelection(measure, main_pool([row for row in rows if row["split"] == "test"]))
    languages = list(dict.fromkeys(language for language, _ in scored[label].values(*selection)))
    made = figures([(each,) for each in scored.values()], languages, selection, RESAMPLES, seed=0)
    own = made[(scored[label],)]
    found = [_interval(own.observed[-1], own.resampled[:, -1], own, (task, measure, label))]
    if before is not None:
        other = made[(scored[before],)]
        gained, resampled = own.observed - other.observed, own.resampled - other.resampled
        found.append(_interval(gained[-1], resampled[:, -1], own, (task, measure, f"{label} less {before}")))
    return tuple(found)


def _scored(run: Run, rows: Iterable[Row], name: str) -> Scored:
    (scored,) = combine([(run, row) for row in rows if row["learner"] == name])[1]
    return scored


def _interval(value: float, resampled: Any, figure: Figure, of: tuple[str, str, str]) -> Interval:
    found = interval(np.asarray(resampled))
    low, high = (None if end is None else 100 * end for end in (found.low, found.high))
    return Interval(*of, 100 * float(value), low, high, figure.clusters, "questions" if figure.unknown else "articles")
