"""Contrast by the cross entropy against the similarities of a teacher (Ding et al. 2022, Table 5)."""

import torch
from torch import Tensor

from metasearch.algorithms.losses.base import EmbeddedSet, Loss, cosines
from metasearch.algorithms.losses.in_batch import Temperature


class ContrastCE(Loss):
    """−1/N Σ_ij cos(T(s_i), T(s_j)) log softmax_j(cos(S(s_i), S(t_j)) / τ), T the teacher and S the student.

    The paper prints no `1/N`; without it the term would grow with the batch.
    """

    Options = Temperature
    columns = ("teacher", "source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of the columns `teacher` T(s), `source` S(s) and `target` S(t), each `(N, D)`."""
        teacher, source, target = (batch.vectors[name] for name in self.columns)
        likely = torch.log_softmax(cosines(source, target) / self.options.temperature, dim=1)
        return -(cosines(teacher, teacher) * likely).sum(1).mean()


LOSS = ContrastCE
