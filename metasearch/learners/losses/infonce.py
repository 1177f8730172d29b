"""InfoNCE in the batch (van den Oord et al. 2018, equation 4): each question is to find its answer among all texts."""

import torch
from torch import Tensor
from torch.nn import functional as F

from metasearch.learners.losses.base import Embedded, Loss, cosines, equal_texts
from metasearch.spec.declared import Declared, Rate


class InfoNCE(Loss):
    """−1/B Σ_i log (exp(cos(q_i, p_i)/τ) / Σ_c exp(cos(q_i, c)/τ)), c = p_i and every wrong answer to question i.

    Wrong answers are the distinct texts among the positives of other questions and all negatives, less every text that
    is a positive of the question itself. So translations of its answer and repeated texts are not pushed away.
    """

    class Options(Declared):
        """Temperature τ."""

        temperature: Rate = 0.05

    columns = ("question", "positive")

    def __call__(self, batch: Embedded) -> Tensor:
        """Return the loss of the columns `question`, `positive` and, where there is one, `negative`, each `(B, D)`."""
        answers = [name for name in ("positive", "negative") if name in batch.vectors]
        texts = torch.cat([batch.texts[name] for name in answers])
        same = equal_texts(texts)
        # Of equal texts the first stands for all; below the diagonal are those before it.
        asked, first = equal_texts(batch.texts["question"]), ~same.tril(-1).any(dim=1)
        # [i, c]: some example asks what example i asks, and has text c as its positive.
        # Booleans have no matrix product, and autocast leaves float64 as it is.
        right = (asked.double() @ same[: len(asked)].double()) > 0
        candidates = torch.cat([batch.vectors[name] for name in answers])
        return infonce(batch.vectors["question"], candidates, first & ~right, self.options.temperature)


def infonce(anchors: Tensor, candidates: Tensor, wrong: Tensor, temperature: float) -> Tensor:
    """Return the mean cross entropy of finding candidate i for anchor i.

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


LOSS = InfoNCE
