"""The classification objective of Sentence-BERT (Reimers & Gurevych 2019, section 3).

o = softmax(W (u, v, |u − v|)),   W of shape (classes, 3D)
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def entailment_logits(first: Tensor, second: Tensor, head: Tensor) -> Tensor:
    """Return W (u, v, |u − v|), of which the softmax is taken.

    Args:
        first: sentence vectors u, `(B, D)`, not normalised.
        second: sentence vectors v, `(B, D)`.
        head: W, `(classes, 3D)`.

    Returns:
        Logits `(B, classes)`.
    """
    return F.linear(torch.cat([first, second, (first - second).abs()], dim=-1), head)


def entailment_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross entropy.

    Args:
        logits: `(B, classes)`.
        labels: class numbers `(B,)`.

    Returns:
        A scalar.
    """
    return F.cross_entropy(logits, labels)
