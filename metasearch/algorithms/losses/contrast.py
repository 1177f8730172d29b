"""Contrasts between source texts and their translations (Ding et al. 2022), for the last stage of a distillation.

Notation: N pairs of a text s and its translation t, T the teacher, S the student, τ the temperature.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet, Loss, Temperature, cosines, equal_texts, infonce


class ContrastBool(Loss):
    """1/N² Σ_ij (same_ij − cos(S(s_i), S(t_j)))², same_ij = 1 where s_i and s_j are one text."""

    columns = ("source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `source` S(s) and `target` S(t), each `(N, D)`."""
        similar = cosines(batch.vectors["source"], batch.vectors["target"])
        return F.mse_loss(similar, equal_texts(batch.texts["source"]).to(similar.dtype))


LOSS_CONTRAST_BOOL = ContrastBool
"""Contrast to 1 for translations of the same text and 0 for others (Ding et al. 2022, Table 5)."""


class ContrastSoft(Loss):
    """1/N² Σ_ij (cos(T(s_i), T(s_j)) − cos(S(s_i), S(t_j)))²."""

    columns = ("teacher", "source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `teacher` T(s), `source` S(s) and `target` S(t), each `(N, D)`."""
        teacher, source, target = (batch.vectors[name] for name in self.columns)
        return F.mse_loss(cosines(source, target), cosines(teacher, teacher))


LOSS_CONTRAST_SOFT = ContrastSoft
"""Contrast to a teacher's similarities (Ding et al. 2022, equation 5)."""


class ContrastCE(Loss):
    """−1/N Σ_ij cos(T(s_i), T(s_j)) log softmax_j(cos(S(s_i), S(t_j)) / τ).

    This is equation 9 as printed, but for `1/N`; without it the term would grow with the batch. At weight 1 it is some
    100,000 times the squared error of a student that has learned, so that the student trains on this term alone. Its
    optimum gives a text's own translation the share of one in the sum of all cosines. The authors' code has the loss
    `contrast-ce-hard` instead.
    """

    Options = Temperature
    columns = ("teacher", "source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `teacher` T(s), `source` S(s) and `target` S(t), each `(N, D)`."""
        teacher, source, target = (batch.vectors[name] for name in self.columns)
        likely = torch.log_softmax(cosines(source, target) / self.options.temperature, dim=1)
        return -(cosines(teacher, teacher) * likely).sum(1).mean()


LOSS_CONTRAST_CE = ContrastCE
"""Contrast by the cross entropy against a teacher's similarities (Ding et al. 2022, Table 5)."""


class ContrastCEHard(Loss):
    """−1/N Σ_i log softmax_j(cos(S(s_i), S(t_j)) / τ)_i.

    The authors' code has τ = 1/20 and adds 0.01 times this loss to the squared error. It counts the translation of
    another pair with the same source as wrong; here such a translation is no candidate.
    """

    Options = Temperature
    columns = ("source", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `source` S(s) and `target` S(t), each `(N, D)`."""
        wrong = ~equal_texts(batch.texts["source"])
        return infonce(batch.vectors["source"], batch.vectors["target"], wrong, self.options.temperature)


LOSS_CONTRAST_CE_HARD = ContrastCEHard
"""Contrast by the cross entropy on hard labels, without the teacher: the code of Ding et al. (2022), Table 5."""


class ContrastInfoNCE(Loss):
    """−1/N Σ_i log softmax_j(cos(S(t_i), T(s_j)) / τ)_i.

    It uses no student vectors of sources. Another pair with the same source is not a wrong answer and is excluded.
    """

    Options = Temperature
    columns = ("teacher", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `teacher` T(s) and `target` S(t), each `(N, D)`."""
        wrong = ~equal_texts(batch.texts["source"])
        return infonce(batch.vectors["target"], batch.vectors["teacher"], wrong, self.options.temperature)


LOSS_CONTRAST_INFONCE = ContrastInfoNCE
"""InfoNCE against a teacher: each translation is to find the vector of its source; not in Ding et al. (2022)."""
