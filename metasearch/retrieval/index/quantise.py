"""Vectors as whole numbers: eight bits a dimension with a step for each vector.

A quantised vector depends on the vector alone, so order and batches change no bits.

Notation used for shapes: n vectors, q queries, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST = 127
"""Greatest code: -128 is not used, so that codes are symmetric."""
_LOW_BITS = 7
_LARGEST_SUM = 2**31 - 1

Codes = NDArray[np.int8]


class Quantised(NamedTuple):
    """Vectors as whole numbers: a vector is about its codes times its step.

    Attributes:
        codes: `(n, D)`.
        steps: `(n,)`.
    """

    codes: Codes
    steps: NDArray[np.float32]

    def take(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Return some rows' vectors, `(r, D)`."""
        return np.asarray(self.codes[rows] * self.steps[rows][:, None], np.float32)


def to_int8(vectors: NDArray[np.float32]) -> Quantised:
    """Return codes `(n, D)` from -127 to 127 and each vector's step `(n,)`.

    The greatest component of a vector has the code 127 or -127. Steps keep the lengths of vectors, so that a unit
    vector is one after rounding, too. A vector of zeros has the step 0.

    Args:
        vectors: `(n, D)`, finite.
    """
    exact = vectors.astype(np.float64)
    largest = np.abs(exact).max(1, initial=0.0, keepdims=True)
    codes = np.rint(exact * (MOST / np.where(largest > 0, largest, 1.0)))
    length = np.sqrt(np.square(codes).sum(1))
    steps = np.sqrt(np.square(exact).sum(1)) / np.where(length > 0, length, 1.0)
    return Quantised(codes.astype(np.int8), steps.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries as 15-bit integers, or fewer bits if a dot product would not fit 32 bits.

    Attributes:
        numbers: `(q, D)`.
        steps: a query is about its numbers times its step, `(q,)`.
    """

    numbers: NDArray[np.int32]
    steps: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> "Queries":
        """Return finite vectors `(q, D)` as queries."""
        # Any dot product with codes is then below 2³¹, whatever the codes are.
        most = min(MOST << _LOW_BITS, _LARGEST_SUM // (MOST * max(vectors.shape[1], 1)))
        exact = vectors.astype(np.float64)
        steps = np.abs(exact).max(1, initial=0.0, keepdims=True) / most
        numbers = np.rint(exact / np.where(steps > 0, steps, 1.0))
        return cls(numbers.astype(np.int32), steps[:, 0].astype(np.float32))

    def halves(self) -> Codes:
        """Return the upper parts of all queries, then the lower: numbers = 128 · upper + lower, `(2q, D)`."""
        upper = (self.numbers + (1 << _LOW_BITS >> 1)) >> _LOW_BITS
        return np.concatenate([upper, self.numbers - (upper << _LOW_BITS)]).astype(np.int8)

    @staticmethod
    def joined(products: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return dot products with numbers `(n, q)` from those with `halves()` `(n, 2q)`."""
        count = products.shape[1] // 2
        return (products[:, :count] << _LOW_BITS) + products[:, count:]
