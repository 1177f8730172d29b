"""Weights as a safetensors file holds them: in 8, 16 or 32 bits, mapped into memory, where pages come when touched.

Notation used for tensor shapes: B texts in a batch, T tokens, V words, D columns.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.errors import EncoderError

SCALE = ".scale"
"""What the name of a matrix in int8 is followed by in the name of its steps."""


class StoredWeights:
    """The weights in a file, by name: a table stays there, all others are in memory in float32.

    Args:
        path: the file.
        table: name of the matrix whose rows stay in the file; empty for none.
    """

    def __init__(self, path: Path, table: str = "") -> None:
        self.path = path
        self._written = _written(path)
        mapped = {table, table + SCALE}
        # Pages that are read are in memory as long as the file is open, and copies are beside them.
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name not in mapped]  # noqa: SIM118 - not a mapping
            self._whole = {name: _in_memory(file, name) for name in names if not name.endswith(SCALE)}
        with safe_open(path, framework="pt") as file:
            self._table = {name: file.get_tensor(name) for name in file.keys() if name in mapped}  # noqa: SIM118

    def whole(self, name: str) -> Tensor:
        """Return a weight in float32."""
        return self._whole[name]

    def table(self, name: str) -> "StoredTable":
        """Return the matrix whose rows stay in the file."""
        return StoredTable(self, self._table[name], self._table.get(name + SCALE))

    def require_unchanged(self) -> None:
        """Raise `EncoderError` where the file was written since it was opened: rows would be of another one.

        A file that was deleted, or replaced by another one, stays open with its rows.
        """
        now = _written(self.path) if self.path.exists() else self._written
        if now[:2] == self._written[:2] and now != self._written:
            raise EncoderError(f"{self.path}: the file was changed while it was in use; start again")


class StoredTable(nn.Module):
    """An embedding matrix `(V, D)` that stays in its file; rows are taken to float32 where they are read."""

    def __init__(self, weights: StoredWeights, rows: Tensor, steps: Tensor | None) -> None:
        super().__init__()
        self._weights = weights
        # Not parameters or buffers, which may be moved, converted or trained.
        self._stored = (rows, steps)

    def forward(self, ids: Tensor) -> Tensor:
        """Return rows `(B, T, D)` for token ids `(B, T)`."""
        self._weights.require_unchanged()
        rows, steps = self._stored
        found = F.embedding(ids, rows).to(torch.float32)
        if steps is None:
            return found
        # A step for each row, or for each column.
        return found.mul_(F.embedding(ids, steps) if len(steps) == len(rows) else steps)


def _in_memory(file: Any, name: str) -> Tensor:
    found: Tensor = file.get_tensor(name)
    if found.dtype == torch.int8:
        return found.to(torch.float32).mul_(file.get_tensor(name + SCALE))
    return found.to(torch.float32, copy=True)


def _written(path: Path) -> tuple[int, int, int, int]:
    """Return device and inode of a file, which name it whatever its path, then its size and time."""
    try:
        found = path.stat()
    except OSError as error:
        raise EncoderError(f"{path}: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
