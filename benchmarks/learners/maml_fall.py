"""MAML whose inner steps would each lower the support loss by a fixed share, if the loss were linear in the weights.

The rate of a step is `inner_fall` · L / ‖g‖², the step size of Polyak (1987) for the target (1 − inner_fall) · L. It
counts as a constant, in second order too.
"""

from typing import Annotated

import torch
from pydantic import Field

from metasearch.algorithms.base import EpisodeLearner
from metasearch.algorithms.inner_loop import Model, Rates
from metasearch.algorithms.maml import MAML
from metasearch.algorithms.sets import Prepared

Fall = Annotated[float, Field(gt=0, le=1)] | None


class FallingLearner(EpisodeLearner):
    """A learner with the option `inner_fall`, which replaces `inner_lr` where it is given."""

    @property
    def inner_lr(self) -> Rates:
        """The rate of inner steps: 1 of a scaled loss, or the option."""
        return 1.0 if self.options.inner_fall else super().inner_lr

    def adapted(self, model: Model, support: Prepared, steps: int) -> Model:
        """Return a copy of a model after inner steps on a support set."""
        if self.options.inner_fall is None:
            return super().adapted(model, support, steps)
        copy = model.clone()
        for _ in range(steps):
            loss = self.loss(copy, support)
            gradient = torch.autograd.grad(loss, copy.weights, retain_graph=True, allow_unused=True)
            squares = torch.stack([g.detach().square().sum() for g in gradient if g is not None]).sum()
            # A loss without slope, such as a triplet loss beyond its margin, takes no step.
            copy.adapt(torch.where(squares > 0, self.options.inner_fall * loss.detach() / squares, 0.0) * loss)
        return copy


class MAMLFall(FallingLearner, MAML):
    """MAML with the option `inner_fall`."""

    class Options(MAML.Options):
        """MAML's, and the share of the support loss that an inner step would remove."""

        inner_fall: Fall = None


LEARNER = MAMLFall
