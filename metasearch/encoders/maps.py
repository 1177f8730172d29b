"""Linear maps of vectors, estimated without labels: language bias, the centre of queries, and translations of pages.

**Language bias.** A multilingual encoder puts the language of a text into its vector: wrong answers in the question's
language are nearer than right ones in another. Let g be the mean over languages of their mean vectors, and V
orthonormal rows:

    f(x) = normalise((x − g) − Vᵀ V (x − g))

V spans the directions in which the means of languages differ. With all L − 1 directions every language has the same
mean before normalisation. A lower rank removes the largest principal components of the means (right singular vectors
of means − g). With one language V has no rows, and f only centres. After Libovický et al. 2020, "On the Language
Neutrality of Pre-trained Multilingual Representations", who subtract the mean of each text's own language, and Yang et
al. 2021, "A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations", who
remove singular vectors of each text's own language.

**Queries** are shorter than passages and have another mean. What is left of a wrong mean is common to all queries, and
outweighs the content of short ones. So f subtracts a centre c of their own from queries (`query_centre`).

**Translations.** The vector of a page is the mean of its first passages. With the differences of pages from the means
of their translations, and their second moment S, scaled to a mean eigenvalue of 1, a query q becomes

    normalise(A q),  A = (I + β S)⁻¹,  β = ½ m / (m + D)

for m differences: what distinguishes a page from its translations counts less, and few differences change little. The
score of a passage d is then qᵀ A d up to a factor. This is within-class covariance normalisation (Hatch et al. 2006,
"Within-Class Covariance Normalization for SVM-based Speaker Recognition") with a page and its translations as a class,
and on the side of queries alone.

Notation used for tensor shapes: n texts, L languages, D dimensions, R directions, m differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.projection import LEAST
from metasearch.errors import ConfigError, DataError

Exact = NDArray[np.float64]
Vectors = NDArray[np.float32]

_NOTHING = 1e-10
"""Share of the largest singular value below which a direction is rounding."""
ROUNDING = 1e-5
"""Share of the length of vectors below which a difference of two is rounding: float32, in batches of any length."""
_TOWARDS = 0.5
"""How far the centre of queries goes from that of passages to that of made-up queries."""
_PRIOR = 10
"""Real queries whose mean has the same weight as the centre without any."""
_WEIGHT = 0.5
"""β for very many differences."""


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


def centred(vectors: Mapping[str, NDArray[Any]]) -> Projection:
    """Return the projection without a direction for unit vectors `(n, D)` by language: it only centres."""
    means = np.stack([found.astype(np.float64).mean(0) for found in vectors.values()])
    return Projection(means.mean(0), np.zeros((0, means.shape[1])), tuple(vectors))


def query_centre(projection: Projection, spans: Mapping[str, NDArray[Any]]) -> Exact:
    """Return the centre of queries without any query, c₀ = g + ½ (m₀ − g), `(D,)`.

    Args:
        projection: with the centre g of passages.
        spans: by language, the vectors `(n, D)` of short spans of passages, encoded as queries; m₀ is the mean over
            languages of their means.
    """
    mean = np.stack([found.astype(np.float64).mean(0) for found in spans.values()]).mean(0)
    return cast(Exact, projection.centre + _TOWARDS * (mean - projection.centre))


def shrunk_centre(centre: Exact, mean: Exact, count: int) -> Exact:
    """Return a centre of queries `(D,)`, moved towards the mean of n queries: c + n / (n + 10) (mean − c)."""
    return centre + count / (count + _PRIOR) * (mean - centre)


def mapped(queries: NDArray[Any], matrix: NDArray[Any]) -> Vectors:
    """Return unit vectors of queries `(n, D)` through a matrix `(D, D)`; a vector of zeros stays one."""
    through = queries.astype(np.float64) @ matrix.T.astype(np.float64)
    lengths = np.linalg.norm(through, axis=1, keepdims=True)
    return np.asarray(through / np.where(lengths > 0, lengths, 1.0), np.float32)


def translation_map(groups: Sequence[Sequence[Vectors]]) -> Vectors:
    """Return the matrix A, `(D, D)`, from the passages `(n, D)` of each translation in each group.

    A page with the vectors of an earlier one in its group is an untranslated copy, and does not count.
    """
    dimension = groups[0][0].shape[1]
    several = [pages for pages in map(_translated, groups) if len(pages) > 1]
    differences = np.concatenate([np.zeros((0, dimension), np.float32), *map(around_mean, several)])
    weight = _WEIGHT * len(differences) / (len(differences) + dimension)
    inverse: Vectors = np.linalg.inv(np.eye(dimension) + weight * second_moment(differences)).astype(np.float32)
    return inverse


def _translated(pages: Sequence[Vectors]) -> list[Vectors]:
    """Return the pages of a group without copies of earlier ones."""
    kept = list[Vectors]()
    for page in pages:
        mean = page.mean(0, dtype=np.float64)
        apart = (np.linalg.norm(mean - other.mean(0, dtype=np.float64)) for other in kept)
        kept += [page] * all(each > ROUNDING * np.linalg.norm(mean) for each in apart)
    return kept


def around_mean(pages: Sequence[Vectors]) -> Vectors:
    """Return the differences of pages from the mean of all, `(pages, D)`, given the passages of each, `(n, D)`."""
    means = np.stack([own.mean(0) for own in pages])
    differences: Vectors = means - means.mean(0)
    return differences


def second_moment(differences: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the second moment of differences `(m, D)` with a mean eigenvalue of 1, `(D, D)`; zeros without any."""
    exact = differences.astype(np.float64)
    moment: NDArray[np.float64] = exact.T @ exact
    size = np.trace(moment) / len(moment)
    return moment / size if size > 0 else moment
