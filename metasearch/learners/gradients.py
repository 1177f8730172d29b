"""Outer gradients by the formula as it is written: the reference for everything faster."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.encoders.checkpointing import checkpointed
from metasearch.episodes.episode import Episode
from metasearch.learners.base import Learner, OuterLoss
from metasearch.spec.run import Checkpointing

Gradients = Callable[[Learner, Sequence[Episode]], OuterLoss]
"""Puts the gradient of a learner's outer loss into `.grad`, and returns the loss; see `ReferenceGradients`."""


class ReferenceGradients:
    """Takes the outer gradient of any learner, by its outer loss and `backward`.

    Args:
        checkpointing: whether layers are computed again on the way back, for less memory and the same gradient; `auto`
            leaves it to who knows the memory to turn it `on`.
    """

    def __init__(self, checkpointing: Checkpointing = "auto") -> None:
        self.checkpointing = checkpointing

    def __call__(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Put the gradient of the outer loss of a meta-batch into the `.grad` of the learner's parameters.

        A gradient that is zero but in some rows may be a coalesced sparse tensor of those rows. A parameter that the
        loss does not depend on keeps its `.grad` as it is. Returns the loss.
        """
        # Fused attention kernels have no second derivative, the plain one has.
        with sdpa_kernel(SDPBackend.MATH) if learner.second_order else nullcontext():
            return self.take(learner, episodes)

    def take(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Do so, where forward passes may be differentiated as often as the learner needs it."""
        with checkpointed(learner.encoder.embedder, self.checkpointing == "on"):
            loss = learner.outer_loss(episodes)
            # A backward pass runs in the types of its forward pass.
            with torch.autocast(learner.encoder.device.type, enabled=False):
                torch.autograd.backward(loss.total)
        return OuterLoss(loss.total.detach(), loss.terms)
