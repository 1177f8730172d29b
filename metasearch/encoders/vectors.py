"""What gives vectors of texts: an encoder, or what an encoder gave before."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.spec.recipe import Role


class EncodesTexts(Protocol):
    """Gives the vectors of texts; all that an evaluation asks of an encoder."""

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""

    def encode(self, texts: Sequence[str], role: Role, /) -> NDArray[np.float32]:
        """Return the unit vectors of texts, `(len(texts), D)`, in their order."""
