"""Takes the language out of an encoder's vectors by one affine map, which is estimated from texts without labels.

A multilingual encoder puts the language of a text into its vector: wrong answers in the question's language are nearer
than right ones in another. With g the mean over languages of their mean vectors and V orthonormal rows,

    f(x) = normalise((x − g) − Vᵀ V (x − g))

which needs no language of a text at search time and is a linear module at the end of a sentence-transformers model.

- `means`: V spans what the means of the languages differ in. With all L − 1 directions all languages have the same mean
  before normalisation; with fewer, the largest principal components of the means (right singular vectors of means − g)
  are taken out. After Libovický et al. 2020, "On the Language Neutrality of Pre-trained Multilingual
  Representations", who subtract the mean of each text's own language, and Yang et al. 2021 (below).
- `centre`: no V. The same g is subtracted from all vectors, as a text's language is not known to the encoder, so this
  is not the centring of Libovický et al.: languages stay as far from each other as they were.
- `lir`: Yang et al. 2021, "A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual
  Representations": of the matrix of each language's vectors, which is not centred, the first r singular vectors. The
  paper takes them out of vectors of that language, hence needs the language of each text; here V spans those of all
  languages, which are taken out of every vector, and g is 0.

Notation used for tensor shapes: n texts of a language, L languages, D dimensions, R directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import nn

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.vectors import EncodesTexts
from metasearch.errors import ConfigError, DataError, EncoderError
from metasearch.spec.recipe import Role
from metasearch.spec.run_stages import LEAST, NeutralMethod

Vectors = NDArray[np.float64]

_NOTHING = 1e-10
"""Share of the largest singular value below which a direction is rounding."""


@dataclass(frozen=True, eq=False)
class NeutralMap:
    """The affine map f without its normalisation.

    Attributes:
        centre: g, `(D,)`.
        directions: V, orthonormal rows `(R, D)`; none for `centre`.
        method: how it was estimated.
        languages: that were in the estimate.
    """

    centre: Vectors
    directions: Vectors
    method: NeutralMethod
    languages: tuple[str, ...]

    @property
    def weight(self) -> Vectors:
        """I − Vᵀ V, `(D, D)`."""
        return np.eye(len(self.centre)) - self.directions.T @ self.directions

    @property
    def bias(self) -> Vectors:
        """−(I − Vᵀ V) g, `(D,)`."""
        return -self.weight @ self.centre

    def __call__(self, vectors: NDArray[Any]) -> Vectors:
        """Return unit vectors `(n, D)` without their language."""
        mapped = vectors @ self.weight + self.bias
        return cast(Vectors, mapped / np.linalg.norm(mapped, axis=1, keepdims=True))

    def removed(self, vectors: Mapping[str, NDArray[Any]]) -> float:
        """Return the share of the variance of vectors that lies in the directions, each language counted the same."""
        mean = np.mean([found.mean(0, dtype=np.float64) for found in vectors.values()], axis=0)
        centred = [found - mean for found in vectors.values()]
        inside, total = (
            np.mean([np.square(part).sum(1).mean() for part in parts])
            for parts in ([part @ self.directions.T for part in centred], centred)
        )
        return float(inside / total)


@dataclass(frozen=True)
class Mapped:
    """Gives the vectors of an encoder that has no map as they are with one.

    Attributes:
        before: gives vectors without the map.
        neutral: the map.
    """

    before: EncodesTexts
    neutral: NeutralMap

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self.before.device

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return the unit vectors of texts, `(len(texts), D)`, without their language."""
        return self.neutral(self.before.encode(texts, role)).astype(np.float32)


def estimate(
    vectors: Mapping[str, NDArray[Any]], method: NeutralMethod = "means", rank: int | None = None
) -> NeutralMap:
    """Return the map that takes the language out of vectors.

    Args:
        vectors: language → unit vectors of texts in it, `(n, D)`.
        method: `means`, `centre` or `lir`.
        rank: of `means`, how many directions are taken out, by default L − 1; of `lir`, how many singular vectors of
            each language, by default one.

    Raises:
        DataError: there is one language alone, or too few texts of one.
        ConfigError: the rank is out of range, or `centre` is given one.
    """
    width = next((found.shape[1] for found in vectors.values()), 0)
    check({language: len(found) for language, found in vectors.items()}, method, rank, width)
    exact = {language: found.astype(np.float64) for language, found in vectors.items()}
    means = np.stack([found.mean(0) for found in exact.values()])
    centre = means.mean(0)
    if method == "means":
        directions = _leading(means - centre, rank or len(means) - 1)
    elif method == "lir":
        own = np.concatenate([_leading(found, rank or 1) for found in exact.values()])
        centre, directions = np.zeros_like(centre), _leading(own, len(own))
    else:
        directions = np.zeros((0, len(centre)))
    return NeutralMap(centre, directions, method, tuple(vectors))


def check(counts: Mapping[str, int], method: NeutralMethod, rank: int | None, width: int | None = None) -> None:
    """Raise what `estimate` would for as many texts of each language, before any is encoded to its `width` numbers."""
    languages = len(counts)
    if languages < 2:
        there = f"of {next(iter(counts))} alone" if counts else "of no language"
        raise DataError(f"there are texts {there}; what a language adds is told from texts in two or more")
    for language, count in counts.items():
        if count < LEAST:
            raise DataError(f"{language} has {count} texts; the mean of a language needs {LEAST}")
    taken = {"means": languages - 1, "lir": languages}.get(method, 0)
    if rank is None and width is not None and taken >= width:
        raise ConfigError(
            f"{languages} languages: method '{method}' takes {taken} directions out of vectors of {width} numbers, and "
            "nothing would be left; give a lower rank, or take method 'centre'"
        )
    if rank is None:
        return
    if method == "centre":
        raise ConfigError(f"rank {rank}: method 'centre' takes no directions out; leave the rank away, or use 'means'")
    highest, why = languages - 1, f"the means of {languages} languages differ in {languages - 1} directions"
    if width is not None and width <= highest:
        highest, why = width - 1, f"vectors have {width} numbers"
    if method == "lir":
        highest = rank if width is None else (width - 1) // languages
        why = f"{languages} times as many directions must be fewer than the {width} dimensions"
    if rank > highest:
        raise ConfigError(f"rank {rank} is out of range, 1 to {highest}: {why}")


def append(encoder: Encoder, neutral: NeutralMap) -> None:
    """Put a map at the end of an encoder, as a linear module and one that normalises; gradients flow through it.

    Raises:
        EncoderError: it has a map already.
    """
    require_none(encoder)
    like = next(encoder.embedder.parameters())
    weight, bias = (torch.from_numpy(part).to(like) for part in (neutral.weight, neutral.bias))
    dense = Dense(len(bias), len(bias), True, nn.Identity(), weight, bias)
    for module in (dense, Normalize()):
        encoder.model.append(module.train(encoder.embedder.training))


def require_none(encoder: Encoder) -> None:
    """Raise `EncoderError` where an encoder has a map already."""
    if is_neutral(encoder):
        raise EncoderError(
            f"encoder '{encoder.name}' ends in a map that takes the language out already; name the encoder it was made "
            "from. A second map could not be folded into it, as vectors are normalised between the two"
        )


def is_neutral(encoder: Encoder) -> bool:
    """Return whether an encoder ends as `append` leaves one: unit vectors, a square linear map, unit vectors."""
    last = list(encoder.model)[-3:]
    kinds = [type(module) for module in last]
    return (
        kinds == [Normalize, Dense, Normalize]
        and isinstance(last[1].activation_function, nn.Identity)
        and last[1].in_features == last[1].out_features
        and not last[1].use_residual
    )


def _leading(rows: Vectors, count: int) -> Vectors:
    """Return the first right singular vectors, as orthonormal rows; none of those whose singular value is rounding."""
    _, sizes, found = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > _NOTHING * max(float(sizes[0]), np.finfo(np.float64).tiny)
    return cast(Vectors, found[:count][kept[:count]])
