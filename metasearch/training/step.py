"""An outer step as far as its gradient: what it is of, its loss, and how long the gradient is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metasearch.episodes.described import brief
from metasearch.episodes.episode import Episode
from metasearch.errors import NonFiniteError
from metasearch.learners.base import OuterLoss


class NonFiniteStep(NonFiniteError):
    """The loss or the gradient of an outer step is not finite, and the step was not taken.

    Attributes:
        step: number of the step, from 1.
    """

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


@dataclass(frozen=True)
class StepGradient:
    """The loss of an outer step, whose gradient is in the `.grad` of the learner's parameters.

    Attributes:
        number: of the step, from 1.
        phase: such as `meta-train`.
        episodes: its meta-batch.
        loss: of the meta-batch, and its terms.
        norm: Euclidean length of the gradient, before it is cut.
        rate: of the optimiser, as a term, where it changes over time.
    """

    number: int
    phase: str
    episodes: Sequence[Episode]
    loss: OuterLoss
    norm: Tensor
    rate: Mapping[str, float]

    @property
    def terms(self) -> dict[str, float]:
        """Loss, its terms, the norm and a rate that changes, as the log has them."""
        return {"loss": self.loss.total.item(), **self.loss.terms, "grad": self.norm.item(), **self.rate}

    def problem(self) -> str | None:
        """Return what is not finite, the loss or else the norm, with the episodes; None where both are."""
        # A finite loss can have a gradient that is not.
        for value, what in ((self.loss.total, "loss"), (self.norm, "gradient norm")):
            if not torch.isfinite(value):
                parts = ", ".join(f"{name} {term:.4g}" for name, term in self.loss.terms.items())
                where = f"{self.phase} {what} at outer step {self.number}"
                return f"the {where} is {value.item()} ({parts}), of episodes {brief(self.episodes)}"
        return None

    def require_finite(self) -> None:
        """Raise `NonFiniteStep` unless loss and gradient are finite."""
        if problem := self.problem():
            advice = "Try a smaller rate: outer.lr, or options.inner_lr where there is one"
            raise NonFiniteStep(f"{problem}; the step was not taken. {advice}", self.number)
