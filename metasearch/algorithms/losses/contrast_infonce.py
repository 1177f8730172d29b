"""InfoNCE against a teacher: each translation is to find the vector of its source; not in Ding et al. (2022)."""

from torch import Tensor

from metasearch.algorithms.losses.base import EmbeddedSet, Loss, equal_texts
from metasearch.algorithms.losses.in_batch import Temperature, infonce


class ContrastInfoNCE(Loss):
    """−1/N Σ_i log softmax_j(cos(S(t_i), T(s_j)) / τ)_i, T the teacher and S the student.

    It compares nothing with the student's own vectors of sources. Another pair with the same source is no wrong
    answer, and is left out.
    """

    Options = Temperature
    columns = ("teacher", "target")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of the columns `teacher` T(s) and `target` S(t), each `(N, D)`."""
        wrong = ~equal_texts(batch.texts["source"])
        return infonce(batch.vectors["target"], batch.vectors["teacher"], wrong, self.options.temperature)


LOSS = ContrastInfoNCE
