"""One outer step, as `metasearch.training.trainer` takes it, to be called from outside of the training loop."""

from collections.abc import Sequence

import torch

from metasearch.algorithms.base import Learner
from metasearch.config.recipe import Outer
from metasearch.episodes.episode import Episode
from metasearch.errors import NonFiniteError
from metasearch.training import optimizer
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.trainer import clip, norm_of, rows_or_all


class OuterStep:
    """Takes outer steps: the gradient, the checks of loss and norm, clipping, and the optimiser.

    The rate stays the recipe's, without warm-up or decay, which take no time. `begin` of the learner was called.
    """

    def __init__(self, learner: Learner, gradients: OuterGradients, outer: Outer, dropout: bool) -> None:
        self.learner, self.gradients, self.dropout, self.clip = learner, gradients, dropout, outer.clip
        self.parameters = dict(learner.named_parameters())
        self.optimizer = optimizer.build(self.parameters, outer)

    def __call__(self, episodes: Sequence[Episode]) -> None:
        """Take the step of a meta-batch."""
        self.learner.train(self.dropout)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.gradients(self.learner, list(episodes))
        gradients = [rows_or_all(p) for p in self.parameters.values() if p.grad is not None]
        norm = norm_of(gradients)
        if not torch.isfinite(loss.total) or not torch.isfinite(norm):
            raise NonFiniteError(f"loss {loss.total.item()}, gradient norm {norm.item()}")
        if self.clip:
            clip(gradients, self.clip, norm)
        self.optimizer.step()
        self.learner.after_step()
