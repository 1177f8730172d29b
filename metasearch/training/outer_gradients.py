"""The outer gradient of a meta-batch: every learner's own formula, on learn2learn and the packed encoder.

The outer loss L is a function of values v, which are losses of episodes or outputs of texts. Its gradient is
Σ (∂v/∂θ)ᵀ ∂L/∂v. A meta-batch may be cut into shards, which one process computes or several:

    values of my shards → values of all shards → L and ∂L/∂v → gradients of my shards → their sum → `.grad`

L is the loss of the whole meta-batch. So a loss that couples episodes or compares texts sees all of them, and the
gradient is that of one shard but for rounding and dropout.

`metasearch.training.episode_gradients` computes the episodes of a shard. The graphs of texts are kept until ∂L/∂v is
known, or recomputed with `--checkpointing gradcache`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner, Learner, OuterLoss, Reading, TextLearner, Values
from metasearch.algorithms.inner_loop import Gradient
from metasearch.config.run import Checkpointing
from metasearch.config.seeding import seed_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import is_out_of_memory
from metasearch.episodes.episode import Episode
from metasearch.errors import OutOfMemory, first_line
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup, TreeSum, added
from metasearch.training.episode_gradients import Pulled, ShardGradient, by_parameter, of_episodes
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.parts import Parts

log = logging.getLogger(__name__)

Result = TypeVar("Result")


_MOST_TOGETHER = 64
"""Most episodes in a pass on a GPU, which is busy with fewer."""


class OuterGradients:
    """Compute the outer gradients for an encoder's learners.

    Args:
        encoder: the encoder to train.
        workers: most episodes at the same time; see `PackedEncoder`.
        checkpointing: `layers` recomputes layers in the backward pass, `gradcache` a few texts at a time, for less
            memory and the same gradient; `auto` recomputes layers from the first step on that runs out of memory.

    Attributes:
        notes: slower methods for this encoder, with reasons.
        together: most episodes in a pass (`episode_gradients`); fewer from the first step on that runs out of memory.
    """

    def __init__(self, encoder: Encoder, workers: int | None = None, checkpointing: Checkpointing = "auto") -> None:
        self.packed = PackedEncoder(encoder, workers)
        self.notes = self.packed.plan.notes
        self.checkpointing = checkpointing
        # Calls of a few texts leave a GPU waiting for their launches; on a CPU, threads share the episodes.
        self.together = 1 if encoder.device.type == "cpu" else _MOST_TOGETHER

    def __call__(
        self, learner: Learner, episodes: Sequence[Episode], shards: int = 1, processes: ProcessGroup = SINGLE_PROCESS
    ) -> OuterLoss:
        """Put a meta-batch's outer gradient into `.grad` of the learner's parameters.

        A gradient that is zero but in some rows is a coalesced sparse tensor of those rows. A parameter that the loss
        does not depend on has none. With several shards, shard s draws its dropout from (torch's seed, s).

        Raises:
            OutOfMemory: memory does not suffice, in whatever way the gradient is taken.
        """
        device = learner.encoder.device
        bf16 = torch.is_autocast_enabled(device.type)

        def take() -> tuple[OuterLoss, Gradient]:
            # Fused kernels of attention have no second derivative.
            # The network alone runs in bfloat16, see `Network.run`.
            with learner.attention(), torch.autocast(device.type, enabled=False):
                return self._take(learner, episodes, shards, processes, bf16)

        # What several processes do together, one alone cannot begin again.
        alone = processes.rank.count == 1
        loss, gradient = self._fitting(learner, -(-len(episodes) // shards), take, again=alone)
        for (_, parameter), one in zip(learner.named_parameters(), gradient, strict=True):
            parameter.grad = one
        return loss

    def _take(
        self, learner: Learner, episodes: Sequence[Episode], shards: int, processes: ProcessGroup, bf16: bool
    ) -> tuple[OuterLoss, Gradient]:
        seed, local_shards, begun = torch.initial_seed(), processes.local_shards(shards), []
        for number, shard in enumerate(learner.shards(episodes, shards)):
            if number in local_shards:
                if shards > 1:
                    torch.manual_seed(seed_of(seed, "shard", number))
                begin = partial(self._begin, learner, shard, bf16)
                begun.append(self._fitting(learner, len(shard), begin))
        everyone = processes.gather([each.values for each in begun], learner.encoder.device)
        loss, pulled, own = _pull(learner, episodes, everyone)
        total = TreeSum()
        for number in local_shards:
            # Taken off the list, so that what a shard kept is freed when it is done.
            gradient = begun.pop(0).finish(pulled[number])
            # What the loss depends on beside the values, such as a head, has its gradient from the loss once.
            total.add(added(gradient, own) if number == 0 else gradient)
        return loss, processes.total(total.total, [parameter.detach() for _, parameter in learner.named_parameters()])

    def _begin(self, learner: Learner, shard: Any, bf16: bool) -> ShardGradient:
        self.packed.checkpoint(self.checkpointing)
        if isinstance(learner, TextLearner):
            return _of_texts(learner, shard, self.packed, bf16)
        assert isinstance(learner, EpisodeLearner)
        if not any(shard):
            # The last batch of an epoch may have fewer examples than there are shards.
            return ShardGradient({}, lambda pulled: [None for _ in learner.named_parameters()])
        return of_episodes(learner, shard, self.packed, bf16, self.together)

    def _fitting(self, learner: Learner, count: int, work: Callable[[], Result], again: bool = True) -> Result:
        """Return the result of work; where memory does not suffice, repeat it with less and the same random numbers.

        `count` is the number of episodes in a shard.
        """
        device = learner.encoder.device
        seed = torch.initial_seed()  # nothing was drawn since it was set
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                less = self._need_less(learner, count) if again else None
                if less is None:
                    recompute = "" if self.checkpointing == "gradcache" else "--checkpointing gradcache, "
                    raise OutOfMemory(
                        f"out of memory on {device} in an outer step ({first_line(error)}). Less is needed with "
                        "smaller budget.meta_batch or budget.batch, episodes.k, episodes.q or n_neg, shorter "
                        f"max_length, {recompute}or options.first_order=true"
                    ) from error
            log.warning("out of memory on %s: %s", device, less)
            torch.manual_seed(seed)
            # Outside of `except`, whose error holds on to the graph.
            if device.type == "cuda":
                torch.cuda.empty_cache()

    def _need_less(self, learner: Learner, count: int) -> str | None:
        """Choose a method with less memory for this and later steps; return it, or None."""
        if self.together > 1 and isinstance(learner, EpisodeLearner) and not learner.adapts:
            self.together = max(1, min(self.together, count) // 2)
            how = "one episode is" if self.together == 1 else f"{self.together} episodes are"
            return f"{how} computed at a time; the gradient stays the same but for rounding and dropout"
        if self.packed.workers > 1:
            self.packed.most_workers = 1
            return "one episode is computed at a time; the gradient stays the same"
        if self.checkpointing == "auto":
            self.checkpointing = "layers"
            return "layers are recomputed in the backward pass; the gradient stays the same"
        return None


def _of_texts(learner: TextLearner, shard: Mapping[str, Reading], packed: PackedEncoder, bf16: bool) -> ShardGradient:
    """Compute outputs for a shard's texts, and keep their graphs."""
    values: dict[str, Tensor] = {}
    trained: dict[str, tuple[Parts, Callable[[Tensor], Gradient]]] = {}
    for name, reading in shard.items():
        if not reading.texts:
            continue
        parts = Parts(packed, reading.texts, learner.options.output, bf16)
        if reading.frozen is None:
            values[name], back = parts.begin(parts.batch.cut(packed.weights))
            trained[name] = parts, back
        else:
            # It is a copy of the encoder's network, so its weights can run in the packed copies.
            frozen = dict(reading.frozen.named_parameters())
            values[name] = parts.outputs(parts.batch.cut([frozen[trainable] for trainable in packed.names]))

    def finish(pulled: Pulled) -> Gradient:
        total: Gradient = [None for _ in learner.named_parameters()]
        for name, (parts, back) in trained.items():
            if (slope := pulled[name]) is not None:
                gradient = parts.batch.spread(back(slope))
                total = added(total, by_parameter(learner, packed.weights, gradient))
        return total

    return ShardGradient(values, finish)


def _pull(
    learner: Learner, episodes: Sequence[Episode], everyone: Sequence[Values]
) -> tuple[OuterLoss, list[Pulled], Gradient]:
    """Return the outer loss from the values of all shards, ∂L/∂v per shard, and ∂L/∂θ for L's own parameters."""
    leaves = [{name: value.detach().requires_grad_() for name, value in values.items()} for values in everyone]
    names = dict.fromkeys(name for values in leaves for name in values)
    loss = learner.combine({n: torch.cat([values[n] for values in leaves if n in values]) for n in names}, episodes)
    flat = [value for values in leaves for value in values.values()]
    parameters = [parameter for _, parameter in learner.named_parameters()]
    found = iter(torch.autograd.grad(loss.total, [*flat, *parameters], allow_unused=True))
    pulled: list[Pulled] = [{name: next(found) for name in values} for values in leaves]
    return OuterLoss(loss.total.detach(), loss.terms), pulled, list(found)
