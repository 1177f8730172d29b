"""What a learner compares its outputs with: the outputs of a frozen encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.encoder import Output


class Targets(Protocol):
    """Outputs of a frozen encoder by text; whether they are kept or computed is not seen from here."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, or for output `tokens` one for each token, text after text."""


@dataclass(frozen=True)
class Wanted:
    """Which targets a learner takes.

    Attributes:
        output: of the frozen encoder.
        translations: whether it takes those of the translations, beside those of the pivot texts.
    """

    output: Output
    translations: bool
