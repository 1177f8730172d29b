"""A linear map that removes language bias from vectors, estimated without labels.

A multilingual encoder puts the language of a text into its vector: wrong answers in the question's language are nearer
than right ones in another. Let g be the mean over languages of their mean vectors, and V orthonormal rows:

    f(x) = normalise((x − g) − Vᵀ V (x − g))

V spans the directions in which the means of languages differ. With all L − 1 directions every language has the same
mean before normalisation. A lower rank removes the largest principal components of the means (right singular vectors
of means − g). With one language V has no rows, and f only centres. After Libovický et al. 2020, "On the Language
Neutrality of Pre-trained Multilingual Representations", who subtract the mean of each text's own language, and Yang et
al. 2021, "A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations", who
remove singular vectors of each text's own language.

Notation used for tensor shapes: n texts, L languages, D dimensions, R directions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.projection import LEAST
from metasearch.errors import ConfigError, DataError

Exact = NDArray[np.float64]

_NOTHING = 1e-10
"""Share of the largest singular value below which a direction is rounding."""
ROUNDING = 1e-5
"""Share of the length of vectors below which a difference of two is rounding: float32, in batches of any length."""


@dataclass(frozen=True, eq=False)
class Projection:
    """The projection f: centre g `(D,)` and orthonormal directions V `(R, D)`."""

    centre: Exact
    directions: Exact
    languages: tuple[str, ...]

    @cached_property
    def weight(self) -> Exact:
        """I − Vᵀ V, `(D, D)`."""
        return np.eye(len(self.centre)) - self.directions.T @ self.directions

    @cached_property
    def bias(self) -> Exact:
        """−(I − Vᵀ V) g, `(D,)`."""
        return -self.weight @ self.centre

    def __call__(self, vectors: NDArray[Any], centre: Exact | None = None) -> Exact:
        """Return unit vectors `(n, D)` without their language; `centre` is subtracted in place of g."""
        mapped = vectors @ self.weight + (self.bias if centre is None else -self.weight @ centre)
        return cast(Exact, mapped / np.linalg.norm(mapped, axis=1, keepdims=True))


def estimate(vectors: Mapping[str, NDArray[Any]], rank: int | None = None) -> Projection:
    """Return the projection for unit vectors `(n, D)` by language; `rank` is L − 1 by default.

    Raises:
        DataError: there is only one language, or too few texts of one.
        ConfigError: the rank is out of range.
    """
    width = next((found.shape[1] for found in vectors.values()), 0)
    check_counts({language: len(found) for language, found in vectors.items()}, rank, width)
    means = np.stack([found.astype(np.float64).mean(0) for found in vectors.values()])
    centre = means.mean(0)
    # The first right singular vectors, without ones at rounding level.
    _, sizes, found = np.linalg.svd(means - centre, full_matrices=False)
    kept = sizes > max(_NOTHING * float(sizes[0]), ROUNDING * float(np.linalg.norm(means, axis=1).max()))
    count = rank or len(means) - 1
    return Projection(centre, found[:count][kept[:count]], tuple(vectors))


def check_counts(counts: Mapping[str, int], rank: int | None, width: int | None = None) -> None:
    """Raise the errors of `estimate` for `counts` texts per language, before encoding to `width` dimensions."""
    languages = len(counts)
    if languages < 2:
        there = f"of {next(iter(counts))} alone" if counts else "of no language"
        raise DataError(f"texts {there}; the estimate needs at least two languages")
    for language, count in counts.items():
        if count < LEAST:
            raise DataError(f"{language} has {count} texts; the mean of a language needs {LEAST}")
    highest, why = languages - 1, f"the means of {languages} languages differ in {languages - 1} directions"
    if width is not None and width <= highest:
        highest, why = width - 1, f"vectors have {width} dimensions"
        if rank is None:
            raise ConfigError(
                f"{languages} languages: removing {languages - 1} directions from vectors of {width} dimensions leaves "
                f"nothing; give a rank of {highest} or less"
            )
    if rank is not None and rank > highest:
        raise ConfigError(f"rank {rank} is out of range, 1 to {highest}: {why}")
