"""Detects the collapse of an encoder's sentence vectors in training, which the loss does not show.

A student whose vectors are nearly all the same can have a low loss and useless similarities (sentence-transformers
issues 1164, 1068, 831). So the shape of its vectors is monitored beside the scores. Two kinds of collapse are
distinguished: all vectors come to one point, or they differ along a few directions only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.evaluation.metrics import geometry

COSINE = 0.98
"""Mean pairwise cosine above which vectors are one point. Random weights alone give up to 0.93, measured on 200
sentences, and yet a rank of 90 to 160."""

SPREAD_SHARE = 1 / 3
"""Share of the spread of step 0 below which vectors have come to one point: from a cosine of 0.1 to one of 0.9."""

RANK = 3.0
"""Effective rank below which vectors differ along a few directions; a healthy one is tens to hundreds."""

RANK_SHARE = 0.1
"""Share of the effective rank of step 0 below which vectors have come to differ along a few directions."""


@dataclass(frozen=True)
class Health:
    """The shape of a set of sentence vectors; see `metasearch.evaluation.metrics.geometry`.

    Attributes:
        cosine: mean pairwise cosine.
        spread: root mean squared distance of the unit vectors to their mean.
        rank: effective rank of the centred unit vectors.
    """

    cosine: float
    spread: float
    rank: float


def health(vectors: NDArray[np.floating]) -> Health:
    """Return the shape of the vectors of different sentences.

    Args:
        vectors: sentence vectors, `(N, D)`. The rank is at most N − 1: take some hundred sentences, always the same.

    Raises:
        DataError: there are no vectors.
        NonFiniteError: a vector is not finite or has length 0.
    """
    return Health(geometry.mean_pairwise_cosine(vectors), geometry.spread(vectors), geometry.effective_rank(vectors))


def diagnose(now: Health, before: Health | None, dimension: int) -> str | None:
    """Return a warning that names the kind of collapse and its likely cause, or None when the vectors are healthy.

    Args:
        now: shape of the vectors at this step.
        before: shape of the vectors of the same sentences at step 0; None when this is step 0.
        dimension: dimension D of the vectors; a rank that D does not allow is not asked for.
    """
    to_point = _to_point(now, before)
    if not to_point and not _to_few_directions(now, before, dimension):
        return None
    symptom = "all vectors are nearly the same" if to_point else "the vectors differ along a few directions only"
    start = "" if before is None else f"; at step 0 {_format(before)}"
    return f"collapse: {symptom} ({_format(now)}{start}). {_cause(to_point, before, dimension)}"


def _to_point(now: Health, before: Health | None) -> bool:
    return now.cosine > COSINE or (before is not None and now.spread < SPREAD_SHARE * before.spread)


def _to_few_directions(now: Health, before: Health | None, dimension: int) -> bool:
    few = min(RANK, dimension / 2)
    return now.rank < few or (before is not None and now.rank < RANK_SHARE * before.rank)


def _cause(to_point: bool, before: Health | None, dimension: int) -> str:
    if before is None:
        return (
            "Nothing is trained yet: a student that starts from random weights may leave this state, a trained encoder "
            "has the wrong tokenizer, embeddings or pooling"
        )
    if _to_point(before, None) or _to_few_directions(before, None, dimension):
        return (
            "It was so at step 0 and training has not changed it: look at the tokenizer, the embeddings and the "
            "pooling, and whether the weights that train are those that are scored"
        )
    if to_point:
        return (
            "It came with training: the learning rate is too high, or the targets are constant, as those of an EMA "
            "teacher become where tau is too small"
        )
    return (
        "It came with training: the targets are not matched; compare the dimension and the normalisation of teacher "
        "and student, and look whether many targets are the same"
    )


def _format(state: Health) -> str:
    return f"mean cosine {state.cosine:.2f}, spread {state.spread:.2f}, effective rank {state.rank:.1f}"
