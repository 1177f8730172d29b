"""Query adapters: small trainable maps of query vectors, which leave documents alone.

An adapter maps the unit vector q of a query to normalise(A q), and is the identity at its start. So the documents of an
index need not be encoded again, and few labels move little. `matrix`: A = I + Δ (a linear adapter as in Llamaindex,
2023, after Houlsby et al. 2019). `low-rank`: A = I + U V (Hu et al. 2021, "LoRA"). `rotation`: A is orthogonal, the
Cayley transform (I − S)⁻¹ (I + S) of a skew-symmetric S (Cayley 1846; Qiu et al. 2023, "Controlling Text-to-Image
Diffusion by Orthogonal Finetuning"). `scale`: A is diagonal.

Notation used for tensor shapes: n queries, D dimensions, R rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.config.roles import Role
from metasearch.encoders.maps import mapped
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import ConfigError, nearest

Form = Literal["matrix", "low-rank", "rotation", "scale"]
"""Forms that are trained."""
RANK = 16
"""Rank of `low-rank` by default."""


class QueryAdapter(nn.Module):
    """A linear map of query vectors; a subclass has its parameters. Twice differentiable, in any floating type."""

    form: str

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        raise NotImplementedError

    def forward(self, queries: Tensor) -> Tensor:
        """Return adapted unit vectors `(n, D)` of the unit vectors of queries."""
        return F.normalize(queries @ self.matrix().T, dim=1)

    def documents(self, vectors: Tensor) -> Tensor:
        """Return the vectors of documents `(n, D)`, which an adapter leaves alone."""
        return vectors


class PlanAdapter(QueryAdapter):
    """The maps of an index: W (x − c) of queries, then A, and W (x − g) of documents; each normalised.

    Args:
        weight: W, `(D, D)`.
        centre: g, `(D,)`.
        query_centre: c, `(D,)`.
        matrix: A, `(D, D)`.
    """

    form = "plan"

    def __init__(self, weight: Tensor, centre: Tensor, query_centre: Tensor, matrix: Tensor) -> None:
        super().__init__(len(weight))
        self.weight, self.after = nn.Parameter(weight.float()), nn.Parameter(matrix.float())
        self.centre, self.query_centre = nn.Parameter(centre.float()), nn.Parameter(query_centre.float())

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return self.after

    def forward(self, queries: Tensor) -> Tensor:
        """Return unit vectors of queries `(n, D)`."""
        return F.normalize(F.normalize((queries - self.query_centre) @ self.weight.T, dim=1) @ self.after.T, dim=1)

    def documents(self, vectors: Tensor) -> Tensor:
        """Return unit vectors of documents `(n, D)`."""
        return F.normalize((vectors - self.centre) @ self.weight.T, dim=1)


class MatrixAdapter(QueryAdapter):
    """A = I + Δ."""

    form = "matrix"

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.delta = nn.Parameter(torch.zeros(dimension, dimension))

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return torch.eye(self.dimension).to(self.delta) + self.delta


class LowRankAdapter(QueryAdapter):
    """A = I + U V; U `(D, R)` starts at zero, and V `(R, D)` with random orthonormal rows, the same every time."""

    form = "low-rank"

    def __init__(self, dimension: int, rank: int = RANK) -> None:
        super().__init__(dimension)
        if not 1 <= rank <= dimension:
            raise ConfigError(f"rank {rank} is out of range, 1 to {dimension}")
        random = torch.randn(dimension, rank, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.up = nn.Parameter(torch.zeros(dimension, rank))
        self.down = nn.Parameter(torch.linalg.qr(random).Q.T.to(self.up).contiguous())

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return torch.eye(self.dimension).to(self.up) + self.up @ self.down


class RotationAdapter(QueryAdapter):
    """A = (I − S)⁻¹ (I + S) with S = Δ − Δᵀ: lengths and angles between queries stay."""

    form = "rotation"

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.delta = nn.Parameter(torch.zeros(dimension, dimension))

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        skew, identity = self.delta - self.delta.T, torch.eye(self.dimension).to(self.delta)
        solved: Tensor = torch.linalg.solve(identity - skew, identity + skew)
        return solved


class ScaleAdapter(QueryAdapter):
    """A = diag(1 + s)."""

    form = "scale"

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.factors = nn.Parameter(torch.zeros(dimension))

    def matrix(self) -> Tensor:
        """Return A, `(D, D)`."""
        return torch.diag(1 + self.factors)

    def forward(self, queries: Tensor) -> Tensor:
        """Return adapted unit vectors `(n, D)`, without the matrix."""
        return F.normalize(queries * (1 + self.factors), dim=1)


@dataclass(frozen=True, eq=False)
class MappedEncoder:
    """Embeddings of an encoder; questions go through the matrix of an adapter, `(D, D)`."""

    before: TextEncoder
    matrix: NDArray[np.float32]

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self.before.device

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return unit vectors of texts, `(len(texts), D)`."""
        vectors = self.before.encode(texts, role)
        return mapped(vectors, self.matrix) if role == "question" else vectors


def build_adapter(form: str, dimension: int, rank: int = RANK) -> QueryAdapter:
    """Return a new adapter, which is the identity.

    Args:
        form: one of `Form`.
        dimension: D of the vectors.
        rank: of `low-rank`.

    Raises:
        ConfigError: there is no such form, or the rank is out of range.

    Example:
        >>> build_adapter("rotation", 3).matrix().equal(torch.eye(3))
        True
    """
    forms: dict[str, type[QueryAdapter]] = {
        each.form: each for each in (MatrixAdapter, LowRankAdapter, RotationAdapter, ScaleAdapter)
    }
    if form not in forms:
        known: Sequence[str] = get_args(Form)
        raise ConfigError(f"form '{form}': expected one of {', '.join(known)}.{nearest(form, known)}")
    return LowRankAdapter(dimension, rank) if form == LowRankAdapter.form else forms[form](dimension)
