"""Contrast to the similarities of a teacher (Ding et al. 2022, equation 5)."""

from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet, Loss, cosines


class ContrastSoft(Loss):
    """1/N² Σ_ij (cos(T(s_i), T(s_j)) − cos(S(s_i), S(t_j)))², T the teacher and S the student."""

    columns = ("teacher", "source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of the columns `teacher` T(s), `source` S(s) and `target` S(t), each `(N, D)`."""
        teacher, source, target = (batch.vectors[name] for name in self.columns)
        return F.mse_loss(cosines(source, target), cosines(teacher, teacher))


LOSS = ContrastSoft
