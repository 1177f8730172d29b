"""What a learner learns from: examples of some texts each, whatever their kind."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from metasearch.config.recipe import Role


class Example(Protocol):
    """A few texts that belong together: a triplet, a scored pair, a translation, or a pair with a label.

    Attributes:
        roles: name of each text, such as `positive`, and what that text is to the encoder.
    """

    roles: ClassVar[Mapping[str, Role]]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, in the order of `roles`."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Language codes of the texts; the first is that of the question or the first sentence."""

    @property
    def ids(self) -> tuple[str, ...]:
        """What the example is called in its data, such as its row; empty where only its texts tell it from others."""

    @property
    def score(self) -> float | None:
        """Gold similarity from 0 to 1, in kinds that have one."""

    @property
    def answers(self) -> tuple[str, ...]:
        """Texts of candidates that are labelled as answers to the question, in kinds that have one."""

    def lines(self) -> tuple[str, ...]:
        """Return the example as lines for a person to read."""
