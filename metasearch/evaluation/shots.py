"""A curve of scores by the number of labelled questions that a model was adapted to.

A score is the mean over all draws and all questions of a language that are labelled in none of the draw's adaptations;
the gain is its difference from the score without adaptation, on the same questions. Intervals are those of
`metasearch.evaluation.statistics.jackknife`, over articles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.statistics.jackknife import Interval, Stratum, spread
from metasearch.runs.rows import MEAN, Row

SHOTS_FILE = "shots.jsonl"
"""Rows of `metasearch evaluate --shots` in a run folder, where `metasearch report` finds them."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """The questions of a language in one draw: their articles `(N,)`, and scores by number of shots `(N,)`."""

    articles: Sequence[str]
    scores: Mapping[int, Values]


def curve(draws: Mapping[str, Sequence[Asked]]) -> list[Row]:
    """Return a row for each number of shots and each language, and their mean, from the draws of each language."""
    names = sorted(draws)
    shots = sorted(draws[names[0]][0].scores)
    articles = sorted({article for own in draws.values() for asked in own for article in asked.articles})
    place = {article: i for i, article in enumerate(articles)}
    sums, counts = np.zeros((len(articles), len(names), len(shots))), np.zeros((len(articles), len(names), 1))
    for column, name in enumerate(names):
        for asked in draws[name]:
            rows = [place[article] for article in asked.articles]
            np.add.at(counts[:, column, 0], rows, 1.0)
            for i, number in enumerate(shots):
                np.add.at(sums[:, column, i], rows, asked.scores[number])
    per_draw = counts.sum((0, 2)) / max(len(own) for own in draws.values())
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = _figures(sums.sum(0) / counts.sum(0))
        without = np.stack([_figures(each) for each in (sums.sum(0) - sums) / (counts.sum(0) - counts)])
    shares = counts[:, :, 0] / counts.sum(0)[:, 0]
    shares = np.concatenate([shares, counts.sum((1, 2))[:, None] / counts.sum()], axis=1)
    stratum = Stratum(
        whole.ravel(),
        without.reshape(len(articles), -1),
        np.broadcast_to(shares[:, None, :, None], (len(articles), *whole.shape)).reshape(len(articles), -1),
        round(per_draw.sum()),
    )
    sampled = spread([stratum])
    ends = np.array(sampled.intervals(whole.ravel()), dtype=object).reshape(whole.shape)
    variance, df = (each.reshape(whole.shape) for each in (sampled.variance, sampled.df))
    sizes = [*per_draw, per_draw.sum()]
    return [
        {
            "language": language,
            "shots": number,
            "value": float(whole[0, j, i]),
            **_ends("", ends[0, j, i]),
            "gain": float(whole[1, j, i]),
            **_ends("gain_", ends[1, j, i]),
            "gain_variance": _finite(variance[1, j, i]),
            "gain_df": _finite(df[1, j, i]),
            "count": round(sizes[j]),
        }
        for i, number in enumerate(shots)
        for j, language in enumerate([*names, MEAN])
    ]


def _figures(scores: Values) -> Values:
    """Return scores and gains `(2, L + 1, K)` of L languages and their mean, from scores `(L, K)`."""
    both = np.concatenate([scores, scores.mean(0, keepdims=True)])
    return np.stack([both, both - both[:, :1]])


def _ends(name: str, interval: Interval) -> dict[str, Any]:
    return {f"{name}low": interval.low, f"{name}high": interval.high}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
