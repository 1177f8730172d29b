"""Detect collapsed sentence embeddings in training, which the loss does not show.

A student whose embeddings are nearly equal can have a low loss and useless similarities (sentence-transformers issues
1164, 1068, 831). All vectors may shrink to one point, or differ along a few directions only.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from metasearch.errors import NonFiniteError

COSINE = 0.98
"""Mean pairwise cosine above which vectors are one point. Random weights alone give up to 0.93, measured on 200
sentences, and yet a rank of 90 to 160."""

SPREAD_SHARE = 1 / 3
"""Share of the spread at step 0 below which vectors count as one point: from cosine 0.1 to 0.9."""

RANK = 3.0
"""Effective rank below which vectors differ along a few directions; a healthy one is tens to hundreds."""

RANK_SHARE = 0.1
"""Share of the effective rank at step 0 below which vectors count as differing along a few directions."""


@dataclass(frozen=True)
class EmbeddingHealth:
    """Statistics on sentence embeddings, each normalised.

    Attributes:
        cosine: mean pairwise cosine: 1 when all are the same, about 0 when they are spread out.
        spread: root mean squared distance of the unit vectors to their mean: 0 when all are the same, 1 when the mean
            is the origin.
        rank: effective rank after centring, the number of directions that vectors differ in: between 1 and
            min(N − 1, D), or 0 where all are the same.
    """

    cosine: float
    spread: float
    rank: float

    def __str__(self) -> str:
        return f"mean cosine {self.cosine:.2f}, spread {self.spread:.2f}, effective rank {self.rank:.1f}"

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> Self:
        """Return statistics on embeddings of different sentences, in float64.

        Args:
            vectors: sentence vectors, `(N, D)`. The rank is at most N − 1: take some hundred sentences, the same ones.
        """
        units = _units(vectors)
        count, total = len(units), units.sum(0)
        # The mean over all pairs without looking at any: |Σ u|² is the sum of all N² cosines, N of which are 1.
        cosine = float((total @ total - count) / (count * (count - 1))) if count > 1 else 1.0
        centred = units - units.mean(0)
        # By the distances and not by 1 − |mean|², which loses half of the digits where the vectors are nearly the same.
        spread = float(np.sqrt(np.square(centred).sum(1).mean()))
        return cls(cosine, spread, _effective_rank(centred))

    def diagnose(self, before: "EmbeddingHealth | None", dimension: int) -> str | None:
        """Return a warning with the kind of collapse and its likely cause, or None."""
        few = min(RANK, dimension / 2)
        # At one point the effective rank is only that of tiny deviations, so the point is named first.
        if self.cosine > COSINE or (before and self.spread < SPREAD_SHARE * before.spread):
            symptom = "all vectors are nearly the same"
            cause = "the learning rate is too high, or the targets are constant (an EMA teacher with too small a tau)"
        elif self.rank < few or (before and self.rank < RANK_SHARE * before.rank):
            symptom = "the vectors differ along a few directions only"
            cause = (
                "unmatched targets: compare dimension and normalisation of teacher and student; look for equal targets"
            )
        else:
            return None
        if before is None:
            cause = "nothing is trained yet; a trained encoder has the wrong tokenizer, embeddings or pooling"
        # By the absolute limits, as nothing comes before step 0.
        elif before.cosine > COSINE or before.rank < few:
            cause = "it was so at step 0: check tokenizer, embeddings and pooling, and which weights are trained"
        start = "" if before is None else f"; at step 0 {before}"
        return f"collapse: {symptom} ({self}{start}). Likely cause: {cause}"


def _units(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    if not usable.all():
        raise NonFiniteError(f"vector {int(np.argmin(usable))} of {len(wide)} is not finite, or has length 0")
    units: NDArray[np.float64] = wide / lengths
    return units


def _effective_rank(centred: NDArray[np.float64]) -> float:
    """Return exp(−Σ p log p) with p = σ / Σ σ for singular values σ (Roy & Vetterli 2007, definition 1).

    The paper does not take the mean away; here it is taken, so that a part that all vectors share does not count.
    """
    values = np.linalg.svd(centred, compute_uv=False)
    # Singular values that are rounding of a zero. Before they were centred the unit vectors had the Frobenius norm √N.
    noise = max(centred.shape) * np.finfo(np.float64).eps * np.sqrt(len(centred))
    values = values[values > noise]
    if len(values) == 0:
        return 0.0
    # No share is 0 here: numpy's 0 · log 0 is NaN, not the limit 0.
    share = values / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))
