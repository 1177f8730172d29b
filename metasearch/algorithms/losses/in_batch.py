"""In-batch contrast: each text has to find its match among all examples in the set (van den Oord et al. 2018)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import cosines, equal_texts
from metasearch.config.base import FrozenConfig, Rate


class Temperature(FrozenConfig):
    """Temperature τ."""

    temperature: Rate = 0.05


def infonce(anchors: Tensor, candidates: Tensor, wrong: Tensor, temperature: float) -> Tensor:
    """Return the mean cross entropy for finding candidate i with anchor i.

    Args:
        anchors: vectors `(N, D)`.
        candidates: vectors `(M, D)`, of which the first N are the right ones, M ≥ N.
        wrong: which candidates each anchor is to tell from its own, `(N, M)`.
        temperature: divisor of the cosines.
    """
    logits = cosines(anchors, candidates) / temperature
    own = torch.arange(len(anchors), device=anchors.device)
    left_out = ~wrong
    # The right candidate is in the sum too, whatever `wrong` says of it.
    left_out[own, own] = False
    return F.cross_entropy(logits.masked_fill(left_out, -torch.inf), own)


def wrong_answers(asked: Tensor, answers: Tensor, labelled: Tensor | None = None) -> Tensor:
    """Return the wrong answers for each question, `(N, M)`: distinct texts that are no example's answer to it.

    Args:
        asked: numbers of the questions `(N,)`.
        answers: numbers of the answers `(M,)`, of which the first N are those of the examples, M ≥ N.
        labelled: whether the text of a number is another answer of each example `(N, numbers)`; by default none is.
    """
    own = equal_texts(answers)[: len(asked)]
    if labelled is not None:
        own = own | labelled[:, answers]
    # [i, c]: some example asks what example i asks, and has text c as an answer.
    # Booleans have no matrix product, and autocast leaves float64 as it is.
    right = (equal_texts(asked).double() @ own.double()) > 0
    return first_of_equal(answers) & ~right


def first_of_equal(texts: Tensor) -> Tensor:
    """Return a mask `(N,)` for the first of each group of equal texts."""
    # Below the diagonal are those before a text.
    return ~equal_texts(texts).tril(-1).any(dim=1)
