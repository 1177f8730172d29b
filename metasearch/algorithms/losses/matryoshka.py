"""Similarities of truncated embeddings (Matryoshka, Kusupati et al. 2022, arXiv:2205.13147).

Kusupati et al. take the loss of a task, such as classification, of each cut vector. The task of a distillation is the
teacher's vector, and that cannot be cut with it: its numbers stand in an order that means nothing. What does not depend
on the order of numbers, nor on how many there are, is how alike the teacher's vectors are to each other (as in
similarity-preserving distillation, Tung & Mori 2019); so the cut vectors learn the similarities of the whole ones.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import cosines


def matryoshka(teacher: Tensor, student: Tensor, dimensions: Sequence[int]) -> Tensor:
    """Return R = 1/|K| Σ_d∈K 1/n² Σ_ij (cos(y_i, y_j) − cos(x_i[:d], x_j[:d]))², a scalar.

    Args:
        teacher: y, vectors of the teacher, `(n, T)`.
        student: x, vectors of the student for the same texts, `(n, D)`.
        dimensions: K, sizes to which vectors are truncated, each from 1 to D.
    """
    wanted = cosines(teacher, teacher)
    # A cosine normalises the truncated vectors.
    errors = [F.mse_loss(cosines(student[:, :d], student[:, :d]), wanted) for d in dimensions]
    return sum(errors, start=wanted.new_zeros(())) / len(dimensions)
