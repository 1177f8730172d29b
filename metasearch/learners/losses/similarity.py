"""The similarity loss of the MAML-Align paper (section 4.2)."""

from torch import Tensor
from torch.nn import functional as F


def cosine_mse(first: Tensor, second: Tensor, gold: Tensor) -> Tensor:
    """Return the mean squared error of the cosine similarity against gold.

    Args:
        first: embeddings `(B, D)`.
        second: embeddings `(B, D)`.
        gold: similarity from 0 to 1, `(B,)`.

    Returns:
        A scalar.
    """
    return F.mse_loss(F.cosine_similarity(first, second), gold)
