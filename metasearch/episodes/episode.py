"""What an episode is made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate, Question
from metasearch.spec.arrangement import Arrangement, Variant
from metasearch.spec.recipe import Role


class Embed(Protocol):
    """Gives texts their vectors on an encoder's present weights."""

    def __call__(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return unit vectors of shape `(len(texts), D)`."""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A question, a candidate that answers it and one that does not."""

    question: Question
    positive: Candidate
    negative: Candidate


@dataclass(frozen=True)
class LabelledSet:
    """Examples in the languages of one variant.

    Triplets of a retrieval task, scored pairs of a similarity task, or what distillation trains on, such as
    translations; all of a set are of one type.
    """

    variant: Variant
    examples: tuple[Any, ...]


@dataclass(frozen=True)
class Episode:
    """A meta-task: sets drawn along one arrangement.

    Two sets are (support, query); three are (X, Y, Z), where Y is the query of X→Y and the support of Y→Z
    (MAML-Align paper, section 3.3).
    """

    arrangement: Arrangement
    sets: tuple[LabelledSet, ...]

    def transfers(self) -> Iterator[tuple[LabelledSet, LabelledSet]]:
        """Yield (support, query) for each arrow of the arrangement."""
        return pairwise(self.sets)
