"""Targets of a learner: the outputs of a frozen encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.encoder import Output


class Targets(Protocol):
    """Outputs of a frozen encoder by text, read from files or computed."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, or for output `tokens` one for each token, text after text."""


@dataclass(frozen=True)
class Wanted:
    """Which targets a learner takes.

    Attributes:
        output: name of the output of the frozen encoder.
        translations: whether outputs for the translations are taken, too, beside those for the pivot texts.
    """

    output: Output
    translations: bool
