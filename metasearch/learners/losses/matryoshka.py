"""Similarities of vectors that are cut to their first numbers (Matryoshka, Kusupati et al. 2022, arXiv:2205.13147).

Kusupati et al. take the loss of a task, such as classification, of each cut vector. The task of a distillation is the
teacher's vector, and that cannot be cut with it: its numbers stand in an order that means nothing. What does not depend
on the order of numbers, nor on how many there are, is how alike the teacher's vectors are to each other (as in
similarity-preserving distillation, Tung & Mori 2019); so the cut vectors learn the similarities of the whole ones.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

from metasearch.learners.losses.base import cosines


def matryoshka(teacher: Tensor, student: Tensor, dimensions: Sequence[int], weights: Sequence[float]) -> Tensor:
    """Return 1/|K| Σ_d∈K c_d · 1/n² Σ_ij (cos(y_i, y_j) − cos(x_i[:d], x_j[:d]))², a scalar.

    Args:
        teacher: y, vectors of the teacher, `(n, T)`.
        student: x, vectors of the student for the same texts, `(n, D)`.
        dimensions: K, how many of the first numbers are kept, each from 1 to D.
        weights: c_d, one for each of them.
    """
    wanted = cosines(teacher, teacher)
    # A cosine normalises what was cut.
    cut = (F.mse_loss(cosines(student[:, :d], student[:, :d]), wanted) for d in dimensions)
    return sum((c * error for c, error in zip(weights, cut, strict=True)), start=wanted.new_zeros(())) / len(dimensions)
