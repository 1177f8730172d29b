"""Removes the language from an encoder's vectors by one linear projection, estimated from texts without labels.

A multilingual encoder puts the language of a text into its vector: wrong answers in the question's language are nearer
than right ones in another. Let g be the mean over languages of their mean vectors, and V orthonormal rows:

    f(x) = normalise((x − g) − Vᵀ V (x − g))

V spans the directions in which the means of languages differ. With all L − 1 directions every language has the same
mean before normalisation. A lower rank removes the largest principal components of the means (right singular vectors
of means − g). After Libovický et al. 2020, "On the Language Neutrality of Pre-trained Multilingual Representations",
who subtract the mean of each text's own language, and Yang et al. 2021, "A Simple and Effective Method To Eliminate the
Self Language Bias in Multilingual Representations", who remove singular vectors of each text's own language.

Notation used for tensor shapes: n texts of a language, L languages, D dimensions, R directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from metasearch.config.projection import LEAST
from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import ConfigError, DataError, EncoderError

Vectors = NDArray[np.float64]

_NOTHING = 1e-10
"""Share of the largest singular value below which a direction is rounding."""


@dataclass(frozen=True, eq=False)
class Projection:
    """The projection f without its normalisation: centre g `(D,)` and orthonormal directions V `(R, D)`."""

    centre: Vectors
    directions: Vectors
    languages: tuple[str, ...]

    @cached_property
    def weight(self) -> Vectors:
        """I − Vᵀ V, `(D, D)`."""
        return np.eye(len(self.centre)) - self.directions.T @ self.directions

    @cached_property
    def bias(self) -> Vectors:
        """−(I − Vᵀ V) g, `(D,)`."""
        return -self.weight @ self.centre

    def __call__(self, vectors: NDArray[Any]) -> Vectors:
        """Return unit vectors `(n, D)` without their language."""
        mapped = vectors @ self.weight + self.bias
        return cast(Vectors, mapped / np.linalg.norm(mapped, axis=1, keepdims=True))


@dataclass(frozen=True)
class ProjectedEncoder:
    """Embeddings of an encoder through a projection, without changing the encoder."""

    before: TextEncoder
    neutral: Projection

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self.before.device

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return language-neutral unit vectors of texts, `(len(texts), D)`."""
        return self.neutral(self.before.encode(texts, role)).astype(np.float32)


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
    kept = sizes > _NOTHING * max(float(sizes[0]), np.finfo(np.float64).tiny)
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


def append(encoder: Encoder, neutral: Projection) -> None:
    """Append a projection to an encoder, as a linear and a normalising module; `EncoderError` if it has one already."""
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    require_none(encoder)
    like = next(encoder.embedder.parameters())
    weight, bias = (torch.from_numpy(part).to(like) for part in (neutral.weight, neutral.bias))
    dense = Dense(len(bias), len(bias), True, nn.Identity(), weight, bias)
    for module in (dense, Normalize()):
        encoder.model.append(module.train(encoder.embedder.training))


def require_none(encoder: Encoder) -> None:
    """Raise `EncoderError` where an encoder has a projection already."""
    from metasearch.encoders.adapted import require_plain

    require_plain(encoder, "neutralise")
    if is_neutral(encoder):
        raise EncoderError(
            f"encoder '{encoder.name}' already has a language-neutral projection; name the encoder it was made from"
        )


def is_neutral(encoder: Encoder) -> bool:
    """Return whether an encoder ends as `append` leaves one: unit vectors, a square linear map, unit vectors."""
    return encoder.neutral
