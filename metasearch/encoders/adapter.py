"""Query adapters: small trainable maps of query vectors, which leave documents alone.

An adapter maps the unit vector q of a query to normalise(A q), and is the identity at its start. So the documents of an
index need not be encoded again, and few labels move little (a linear adapter as in Llamaindex, 2023, after Houlsby et
al. 2019).

Notation used for tensor shapes: n queries, D dimensions.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MatrixAdapter(nn.Module):
    """A = I + Δ, a linear map of query vectors; twice differentiable, in any floating type."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.delta = nn.Parameter(torch.zeros(dimension, dimension))

    @classmethod
    def of(cls, matrix: Tensor) -> "MatrixAdapter":
        """Return the adapter with a matrix A, `(D, D)`."""
        made = cls(len(matrix)).to(matrix)
        with torch.no_grad():
            made.delta.copy_(matrix - torch.eye(len(matrix)).to(matrix))
        return made

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return torch.eye(self.dimension).to(self.delta) + self.delta

    def forward(self, queries: Tensor, coordinates: Tensor | None = None) -> Tensor:
        """Return adapted unit vectors `(n, D)` of the unit vectors of queries.

        With `coordinates` `(n, m)` in the basis B of their span, the parameter may be the slice Δ Bᵀ `(D, m)`.
        """
        if coordinates is not None and self.delta.shape[1] == coordinates.shape[1]:
            return F.normalize(queries + F.linear(coordinates, self.delta), dim=1)
        return F.normalize(queries @ self.matrix().T, dim=1)


class PlanAdapter(nn.Module):
    """The maps of an index: W (x − c) of queries, then A, and W (x − g) of documents; each normalised.

    Args:
        weight: W, `(D, D)`.
        centre: g, `(D,)`.
        query_centre: c, `(D,)`.
        matrix: A, `(D, D)`.
    """

    def __init__(self, weight: Tensor, centre: Tensor, query_centre: Tensor, matrix: Tensor) -> None:
        super().__init__()
        self.dimension = len(weight)
        self.weight, self.after = nn.Parameter(weight.float()), nn.Parameter(matrix.float())
        self.centre, self.query_centre = nn.Parameter(centre.float()), nn.Parameter(query_centre.float())

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return self.after

    def forward(self, queries: Tensor, coordinates: Tensor | None = None) -> Tensor:
        """Return unit vectors of queries `(n, D)`; `coordinates` are of no use here."""
        return F.normalize(F.normalize((queries - self.query_centre) @ self.weight.T, dim=1) @ self.after.T, dim=1)

    def documents(self, vectors: Tensor) -> Tensor:
        """Return unit vectors of documents `(n, D)`."""
        return F.normalize((vectors - self.centre) @ self.weight.T, dim=1)
