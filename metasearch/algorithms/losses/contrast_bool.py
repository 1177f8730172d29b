"""Contrast to 1 for translations of the same text and 0 for others (Ding et al. 2022, Table 5)."""

from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet, Loss, cosines, equal_texts


class ContrastBool(Loss):
    """1/N² Σ_ij (same_ij − cos(S(s_i), S(t_j)))², same_ij = 1 where s_i and s_j are one text."""

    columns = ("source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of the columns `source` S(s) and `target` S(t), each `(N, D)`."""
        similar = cosines(batch.vectors["source"], batch.vectors["target"])
        return F.mse_loss(similar, equal_texts(batch.texts["source"]).to(similar.dtype))


LOSS = ContrastBool
