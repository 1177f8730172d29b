"""The two parts that make an encoder small: a factorised word table, and layers that run more than once.

Multi-stage distillation paper, section 3.1.3. Notation used for tensor shapes: B texts in a batch, T tokens, V words,
K columns of the bottleneck, H columns of the table that it replaces.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

_ROWS = 8192
"""Rows that are taken to float64 or multiplied out at a time; bounds the memory beside the table itself."""


class FactorisedEmbedding(nn.Module):
    """A word table of rank K: `V·K + K·H` weights in place of `V·H`.

    It takes the place of a model's `nn.Embedding`, `padding` included. Positions, token types and LayerNorm come after
    it, as they come after a whole table, so the vector of a word is linear in both factors and has no bias.
    """

    def __init__(self, words: int, bottleneck: int, width: int, padding: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(words, bottleneck, padding_idx=padding)
        self.projection = nn.Linear(bottleneck, width, bias=False)

    @property
    def num_embeddings(self) -> int:
        """V."""
        return self.table.num_embeddings

    @property
    def padding_idx(self) -> int | None:
        """The word whose row gets no gradient."""
        return self.table.padding_idx

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors `(B, T, H)` of word numbers `(B, T)`."""
        vectors: Tensor = self.projection(self.table(ids))
        return vectors

    @torch.no_grad()
    def multiplied_out(self) -> Tensor:
        """Return the table `(V, H)` that this one replaces; each row is what `forward` gives for its word."""
        ids = torch.arange(self.num_embeddings, device=self.table.weight.device)
        return torch.cat([self(part[None])[0] for part in _parts(ids)])

    @torch.no_grad()
    def approximate(self, table: Tensor, weights: Tensor | None = None) -> None:
        """Set both factors to the best approximation of a table `(V, H)` in the sense of least squares.

        That is the truncated singular value decomposition `T ≈ U S Wᵀ` (Eckart and Young, 1936) with `U S` as the
        table and `W` as the projection. `W` holds the first K eigenvectors of the small matrix `TᵀT` `(H, H)`, and
        `U S = T W`: exact, and no decomposition of a matrix of V rows is needed. Computed in float64.

        With weights w `(V,)` of the words, none below 0, the sum of `w_i · |row i − its approximation|²` is smallest:
        `W` holds the eigenvectors of `Tᵀ diag(w) T`.
        """
        # float64 does not exist on Apple's devices.
        device = torch.device("cpu") if table.device.type == "mps" else table.device
        gram = torch.zeros(table.shape[1], table.shape[1], dtype=torch.float64, device=device)
        shares = torch.ones(len(table)) if weights is None else weights
        for part, share in zip(_parts(table.detach()), _parts(shares.detach()), strict=True):
            rows = part.to(device, torch.float64)
            gram += rows.T @ (share.to(device, torch.float64)[:, None] * rows)
        # Eigenvalues come in ascending order.
        basis = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, : self.table.embedding_dim]
        self.projection.weight.copy_(basis)
        for part, target in zip(_parts(table.detach()), _parts(self.table.weight), strict=True):
            target.copy_(part.to(device, torch.float64) @ basis)


class RecurrentLayers(nn.ModuleList):
    """M layers that a loop over them gives R times (`repeats`) in blocks: `1 2 … M 1 2 … M …`.

    Each layer is in it once, so its weights are counted, trained and saved once. A model that loops over its layers
    runs R·M of them; `len` and indices are of the M that exist.
    """

    def __init__(self, layers: list[nn.Module], repeats: int) -> None:
        super().__init__(layers)
        self.repeats = repeats

    def __iter__(self) -> Iterator[nn.Module]:
        for _ in range(self.repeats):
            yield from super().__iter__()


def _parts(table: Tensor) -> Iterator[Tensor]:
    return (table[start : start + _ROWS] for start in range(0, len(table), _ROWS))
