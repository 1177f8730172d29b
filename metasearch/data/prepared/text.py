"""Texts of a prepared corpus: they are texts like any other, and know their tokens and their place, too."""

from typing import Any, Protocol

from numpy.typing import NDArray


class Place(Protocol):
    """The shard that a text is from; see `metasearch.data.prepared.shard.Shard`."""

    number: int

    def ids(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the numbers of the tokens of some texts, one after another, and where those of each end."""


class PreparedText(str):
    """A text that was tokenised before. What is cut out or made of it is an ordinary text without tokens.

    Attributes:
        shard: where it is stored.
        row: its row there.
    """

    __slots__ = ("row", "shard")
    shard: Place
    row: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)
