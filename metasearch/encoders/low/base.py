"""What converted networks share, and the comparison with the whole encoder before one is used."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.encoders.features import Output, TextReader
from metasearch.encoders.probe import probe_rows
from metasearch.errors import EncoderError, first_line

CLOSE = 0.995
"""Least cosine of a probe's vectors with the vectors in float32."""
PROBED = 24, 200
"""Tokens of the longer texts of a probe: T5 tells distances apart up to 128."""


class LowNetwork(ABC):
    """A network whose linear layers are in bfloat16.

    `probed` has the lengths of texts, in tokens, that show whether its vectors are right.

    Args:
        weights: the weights that they are made of, which may be trained.
    """

    probed: tuple[int, ...] = PROBED

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = [*weights]
        self._versions = self._now()

    def _now(self) -> list[tuple[int, int]]:
        return [(weight.data_ptr(), weight._version) for weight in self._weights]

    @property
    def is_current(self) -> bool:
        """Whether no weight was changed since; steps of an optimizer change them."""
        return self._now() == self._versions

    @abstractmethod
    def vectors(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]], output: Output) -> Tensor:
        """Return output `sentence` or `pooled` `(B, D)` in float32 for tokens `(columns, length)`."""


def tried(read: TextReader, network: nn.Module, convert: Callable[[], LowNetwork]) -> LowNetwork | str:
    """Return what `convert` makes of a network, or why it is not used, as a probe of several texts in one row finds."""
    try:
        made = convert()
        columns, rows = probe_rows(read, *made.probed, read.window + 8)
        with torch.no_grad():
            expected = network(read.padded(columns, rows), "pooled")
        cosine = float(F.cosine_similarity(made.vectors(columns, rows, "pooled"), expected).min())
    except EncoderError as error:
        return str(error)
    except Exception as error:  # whatever a network raises that expects another layout or type
        return f"'{read.kind}' cannot read texts in one row: {first_line(error)}"
    return made if cosine >= CLOSE else f"vectors of a probe have a cosine of {cosine:.3f} to vectors in float32"
