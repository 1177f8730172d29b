"""Outer gradients by the fast form of a learner, or by the reference where it has none."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode
from metasearch.fast import maml_align, sets, texts
from metasearch.fast.encoder import FastEncoder
from metasearch.fast.memory import not_enough, out_of_memory
from metasearch.fast.transfer import Gradient, SecondOrder
from metasearch.learners.base import Learner, OuterLoss, Values
from metasearch.learners.distill import Distill
from metasearch.learners.ema import EMA
from metasearch.learners.entailment import Entailment
from metasearch.learners.fine_tune import FineTune
from metasearch.learners.gradients import Begun, ReferenceGradients, dense_parts, pull, put, take_off
from metasearch.learners.maml import MAML
from metasearch.learners.maml_align import MAMLAlign
from metasearch.learners.meta_sgd import MetaSGD
from metasearch.learners.reptile import Reptile
from metasearch.spec.run import Checkpointing

Result = TypeVar("Result")

log = logging.getLogger(__name__)

FORMS: Mapping[type[Learner], Callable[[Any, Sequence[Episode], Any, FastEncoder, bool], Begun]] = {
    MAML: sets.maml,
    MetaSGD: sets.maml,
    MAMLAlign: maml_align.gradient,
    FineTune: sets.fine_tune,
    Reptile: sets.reptile,
    Distill: texts.gradient,
    Entailment: texts.gradient,
    EMA: texts.ema_gradient,
}
"""Learner → function of learner, episodes, a shard of them, encoder and whether forward passes run in bfloat16."""


class FastGradients(ReferenceGradients):
    """Takes outer gradients by the fast form of exactly this class of learners; a subclass may be another formula.

    The arguments are those of `FastEncoder`, and `checkpointing` as for the reference; `notes` says what is done in a
    slower way for this encoder and why.
    """

    def __init__(
        self,
        encoder: Encoder,
        second_order: SecondOrder = "auto",
        workers: int | None = None,
        checkpointing: Checkpointing = "auto",
    ) -> None:
        self.encoder = FastEncoder(encoder, second_order, workers)
        self.notes = self.encoder.plan.notes
        super().__init__(checkpointing)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Forget at the end of this what was found meanwhile to need less memory."""
        with super().trial(), self.encoder.trial():
            yield

    def take(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        """Put the gradient of the outer loss into the `.grad` of the learner's parameters, and return the loss."""
        if type(learner) not in FORMS:
            return super().take(learner, episodes)
        before = take_off(learner)
        try:
            loss = self._fitting(learner, lambda: self._whole(learner, episodes))
        finally:
            put(learner, before)
        return loss

    def values(self, learner: Learner, episodes: Sequence[Episode], shard: Any) -> Begun:
        """Compute the values of a shard, and most of its gradient where that does not depend on other shards."""
        if type(learner) not in FORMS:
            return super().values(learner, episodes, shard)
        return self._fitting(learner, lambda: self._begin(learner, episodes, shard))

    def _whole(self, learner: Learner, episodes: Sequence[Episode]) -> OuterLoss:
        (shard,) = learner.shards(episodes, 1)
        begun = self._begin(learner, episodes, shard)
        everyone = [begun.values]
        loss, (pulled,), own = pull(learner, episodes, everyone)
        begun.finish(pulled, everyone)
        put(learner, own)
        gradient = take_off(learner)
        put(learner, gradient)
        return learner.reported(loss, dense_parts(gradient))

    def _begin(self, learner: Learner, episodes: Sequence[Episode], shard: Any) -> Begun:
        device = learner.encoder.device.type
        bf16 = torch.is_autocast_enabled(device)
        self.encoder.checkpoint(self.checkpointing)
        with torch.autocast(device, enabled=False):  # the network alone runs in bfloat16, see `Network.run`
            begun = FORMS[type(learner)](learner, episodes, shard, self.encoder, bf16)

        def finish(pulled: Gradient, everyone: Sequence[Values]) -> None:
            with torch.autocast(device, enabled=False):
                begun.finish(pulled, everyone)

        return Begun(begun.values, finish)

    def _fitting(self, learner: Learner, work: Callable[[], Result]) -> Result:
        """Return the result of work on a learner without gradients; where memory does not suffice, done with less.

        What is done again draws the same random numbers: dropout is that of the step, however often it is begun.
        """
        device = learner.encoder.device
        random = _random_state(device)
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                less = self.encoder.need_less() or self._checkpoint()
                if less is None:
                    raise not_enough(device, error, self.checkpointing != "texts") from error
            log.warning("out of memory on %s: %s; the gradient stays the same", device, less)
            take_off(learner)
            _set_random_state(device, random)
            # Outside of `except`, whose error holds on to the graph.
            if device.type == "cuda":
                torch.cuda.empty_cache()

    def _checkpoint(self) -> str | None:
        """Turn checkpointing on where it is `auto`; return what is done now, None where nothing changes."""
        if self.checkpointing != "auto":
            return None
        self.checkpointing = "on"
        self.encoder.checkpoint("on")
        return "layers are computed again on the way back"


def _random_state(device: torch.device) -> list[torch.Tensor]:
    """Return the states of the generators that dropout draws from: the processor's, and that of a GPU."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    elif device.type == "mps":
        states.append(torch.mps.get_rng_state())
    return states


def _set_random_state(device: torch.device, states: Sequence[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(states[1])
