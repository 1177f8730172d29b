"""Vectors of unrelated texts in all directions: global orthogonal regularisation (Zhang et al. 2017, section 3.3).

Of two points drawn evenly on the unit sphere of D dimensions the cosine has mean 0 and mean square 1/D. EmbeddingGemma
(arXiv:2509.20354) trains with the mean square alone, so that vectors of few bits and searches by neighbours lose less.
"""

from torch import Tensor
from torch.nn import functional as F

from metasearch.learners.losses.base import cosines


def moments(vectors: Tensor, related: Tensor) -> tuple[Tensor, Tensor]:
    """Return M₁ and M₂, mean and mean square of the cosines of unrelated vectors; 0 where all are related.

    Args:
        vectors: x, `(n, D)`.
        related: which pairs of them are left out, `(n, n)`, each with itself among them.
    """
    found = cosines(vectors, vectors).masked_fill(related, 0.0)
    count = (~related).sum().clamp(min=1)  # the mean over no pairs would be NaN
    return found.sum() / count, found.square().sum() / count


def spread_out(vectors: Tensor, related: Tensor) -> Tensor:
    """Return M₁² + max(0, M₂ − 1/D), a scalar; arguments as `moments`."""
    first, second = moments(vectors, related)
    return first.square() + F.relu(second - 1 / vectors.shape[1])
