"""Encoders through a language-neutral projection (`metasearch.encoders.maps`): beside an encoder, or appended to it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder, require_plain
from metasearch.encoders.maps import Projection
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import EncoderError


@dataclass(frozen=True, eq=False)
class ProjectedEncoder:
    """Embeddings of an encoder through a map of vectors, such as a projection, without changing the encoder.

    The map takes vectors `(n, D)` of texts of some roles.
    """

    before: TextEncoder
    through: Callable[[NDArray[np.float32]], NDArray[Any]]
    roles: Collection[Role] = ("question", "candidate", "text")

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self.before.device

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return unit vectors of texts, `(len(texts), D)`."""
        vectors = self.before.encode(texts, role)
        return self.through(vectors).astype(np.float32) if role in self.roles else vectors


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
    require_plain(encoder, "neutralise")
    if encoder.neutral:
        raise EncoderError(
            f"encoder '{encoder.name}' already has a language-neutral projection; name the encoder it was made from"
        )
