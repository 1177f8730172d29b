"""Adds gradients in one fixed order: along a balanced binary tree over the shards of an outer step.

Sums of floating-point numbers depend on their order. Here it is a property of the shards, and a process that has a
block of 2^k shards, from a multiple of 2^k on, has a whole subtree: the bits are the same for any number of processes.
What a gradient does not have, a parameter or a row, counts as −0.0: to add it changes no number, not even −0.0.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from metasearch.algorithms.inner_loop import Gradient

NOTHING = -0.0


class GradientSum:
    """A sum of dense gradients with `count` tensors; a tensor without gradient is None."""

    def __init__(self, count: int) -> None:
        self.gradient: Gradient = [None] * count

    def add(self, gradient: Sequence[Tensor | None], share: float = 1.0) -> None:
        """Add part of a gradient, in place after the first."""
        for i, one in enumerate(gradient):
            if one is not None:
                total = self.gradient[i]
                # A product is a new tensor, so that what is added later is not written into the caller's gradient.
                self.gradient[i] = one * share if total is None else total.add_(one, alpha=share)


class TreeSum:
    """The sum of 2^k successive gradients, holding at most k + 1."""

    def __init__(self) -> None:
        self._sums: list[tuple[int, Gradient]] = []

    def add(self, gradient: Gradient) -> None:
        """Add the next shard's gradient, whose tensors may be changed."""
        count = 1
        # As in a binary counter: two sums of as many shards become one.
        while self._sums and self._sums[-1][0] == count:
            _, before = self._sums.pop()
            gradient, count = added(before, gradient), 2 * count
        self._sums.append((count, gradient))

    @property
    def total(self) -> Gradient:
        """The sum of all gradients; their number must be a power of two."""
        ((_, total),) = self._sums
        return total


def added(first: Gradient, second: Gradient) -> Gradient:
    """Return the sum of two gradients: dense, sparse with ascending rows, or None if both are."""
    return [_added(one, other) for one, other in zip(first, second, strict=True)]


def rows_of(gradient: Tensor) -> Tensor:
    """Return the row numbers `(n,)` in a coalesced sparse gradient."""
    return gradient.indices()[0]


def union(rows: Sequence[Tensor]) -> Tensor:
    """Return all rows, ascending and each once."""
    distinct: Tensor = torch.unique(torch.cat(list(rows)))
    return distinct


def spread(gradient: Tensor, rows: Tensor | None) -> Tensor:
    """Return a gradient on these rows `(n, ...)`, which hold its own; without `rows` on all, `(V, ...)`."""
    if not gradient.is_sparse:
        return gradient
    places = rows_of(gradient) if rows is None else torch.searchsorted(rows, rows_of(gradient))
    shape = gradient.shape if rows is None else (len(rows), *gradient.shape[1:])
    return gradient.values().new_full(shape, NOTHING).index_copy_(0, places, gradient.values())


def of_rows(values: Tensor, rows: Tensor, shape: torch.Size) -> Tensor:
    """Return a coalesced matrix gradient from ascending, distinct rows."""
    return torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)


def _added(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    if one.is_sparse and other.is_sparse:
        rows = union([rows_of(one), rows_of(other)])
        return of_rows(spread(one, rows) + spread(other, rows), rows, one.shape)
    return spread(one, None) + spread(other, None)
