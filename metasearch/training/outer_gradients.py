"""The outer gradient of a meta-batch: every learner's own formula, on learn2learn and the packed encoder.

The outer loss L is a function of values v, which are losses of episodes or outputs of texts. Its gradient is
Σ (∂v/∂θ)ᵀ ∂L/∂v. A meta-batch may be cut into shards, which one process computes or several:

    values of my shards → values of all shards → L and ∂L/∂v → gradients of my shards → their sum → `.grad`

L is the loss of the whole meta-batch. So a loss that couples episodes or compares texts sees all of them, and the
gradient is that of one shard but for rounding and dropout.

Memory does not grow with the number of episodes: the gradient of each loss is taken before the next loss is computed.
On a GPU, learners without inner steps encode the texts of all episodes in one pass instead, as long as that fits. There
is one sum of gradients for each name of losses, which is multiplied with ∂L/∂v at the end. The graphs of texts are kept
until ∂L/∂v is known, or recomputed with `--checkpointing gradcache`.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.algorithms.base import EpisodeLearner, Learner, OuterLoss, Reading, TextLearner, Values
from metasearch.algorithms.inner_loop import Gradient, Model
from metasearch.algorithms.sets import numbered, prepare, texts_of
from metasearch.config.run import Checkpointing
from metasearch.config.seeding import seed_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import is_out_of_memory
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import OutOfMemory, first_line
from metasearch.training.distributed import SINGLE_PROCESS, GradientSum, ProcessGroup, TreeSum, added
from metasearch.training.packing import Network, PackedBatch, PackedEncoder, PackedModule, Parts

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Losses = dict[str, list[Tensor]]
Pulled = Mapping[str, Tensor | None]
"""A shard's ∂L/∂v, by name; None where L does not depend on them."""


@dataclass(frozen=True)
class ShardGradient:
    """A shard's values without a graph, and `finish`, which returns its gradient from ∂L/∂v."""

    values: Values
    finish: Callable[[Pulled], Gradient]


class OuterGradients:
    """Compute the outer gradients for an encoder's learners.

    Args:
        encoder: the encoder to train.
        workers: most episodes at the same time; see `PackedEncoder`.
        checkpointing: `layers` recomputes layers in the backward pass, `gradcache` a few texts at a time, for less
            memory and the same gradient; `auto` recomputes layers from the first step on that runs out of memory.

    Attributes:
        notes: slower methods for this encoder, with reasons.
        one_pass: whether learners without inner steps encode all texts of a shard in one pass; off from the first step
            on that runs out of memory.
    """

    def __init__(self, encoder: Encoder, workers: int | None = None, checkpointing: Checkpointing = "auto") -> None:
        self.packed = PackedEncoder(encoder, workers)
        self.notes = self.packed.plan.notes
        self.checkpointing = checkpointing
        # Calls of a few texts leave a GPU waiting for their launches; on a CPU, threads share the episodes.
        self.one_pass = encoder.device.type != "cpu"

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
            kernel = sdpa_kernel(SDPBackend.MATH) if learner.second_order else nullcontext()
            # The network alone runs in bfloat16, see `Network.run`.
            with kernel, torch.autocast(device.type, enabled=False):
                return self._take(learner, episodes, shards, processes, bf16)

        # What several processes do together, one alone cannot begin again.
        alone = processes.rank.count == 1
        loss, gradient = self._fitting(learner, take, again=alone)
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
                begun.append(self._fitting(learner, begin))
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
        if self._in_one_pass(learner):
            return _of_sets(learner, shard, self.packed, bf16)
        return _of_episodes(learner, shard, self.packed, bf16)

    def _in_one_pass(self, learner: Learner) -> bool:
        return self.one_pass and isinstance(learner, EpisodeLearner) and not learner.adapts

    def _fitting(self, learner: Learner, work: Callable[[], Result], again: bool = True) -> Result:
        """Return the result of work; where memory does not suffice, repeat it with less and the same random numbers."""
        device = learner.encoder.device
        seed = torch.initial_seed()  # nothing was drawn since it was set
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                less = self._need_less(learner) if again else None
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

    def _need_less(self, learner: Learner) -> str | None:
        """Choose a method with less memory for this and later steps; return it, or None."""
        if self._in_one_pass(learner):
            self.one_pass = False
            return "one episode is computed at a time; the gradient stays the same but for rounding and dropout"
        if self.packed.workers > 1:
            self.packed.most_workers = 1
            return "one episode is computed at a time; the gradient stays the same"
        if self.checkpointing == "auto":
            self.checkpointing = "layers"
            return "layers are recomputed in the backward pass; the gradient stays the same"
        return None


def _of_episodes(
    learner: EpisodeLearner, shard: Sequence[Sequence[LabelledSet]], packed: PackedEncoder, bf16: bool
) -> ShardGradient:
    """Compute losses for a shard's episodes, and a gradient sum per name."""
    sets = [examples for episode in shard for examples in episode]
    batch = packed.lay_out([texts_of(examples) for examples in sets])
    ready = iter([prepare(packed.encoder, *pair) for pair in zip(sets, batch.texts, strict=True)])
    episodes = [[next(ready) for _ in episode] for episode in shard]
    rates = learner.inner_lr
    # Rates that are learned have the shapes of the weights, and gradients like them.
    own = [*rates] if isinstance(rates, Sequence) else []
    parameters = [*packed.weights, *own]
    starts, count = batch.cut(parameters), len(packed.weights)

    def work(network: Network, number: int) -> tuple[Losses, dict[str, Gradient]]:
        # Each episode has leaves of its own, which share the memory of the starting values.
        module = PackedModule(network, starts[:count], bf16)
        learned = [start.detach().requires_grad_() for start in starts[count:]]
        model = Model(module, learned if own else rates, not learner.second_order)
        losses: Losses = {}
        gradients: dict[str, Gradient] = {}
        for name, loss in learner.losses(model, episodes[number]):
            losses.setdefault(name, []).append(loss.detach())
            gradient: Gradient = [*torch.autograd.grad(loss, [*module.parameters(), *learned], allow_unused=True)]
            gradients[name] = added(gradients[name], gradient) if name in gradients else gradient
        return losses, gradients

    # Longest first, so that no thread begins the longest episode when others are done.
    tokens = [sum(tower.tokens for examples in episode for tower in examples.towers) for episode in episodes]
    order = sorted(range(len(episodes)), key=lambda number: -tokens[number])
    found: list[Losses] = [{} for _ in episodes]
    sums: dict[str, GradientSum] = {}
    for number, (losses, gradients) in zip(order, packed.each(order, work), strict=True):
        found[number] = losses
        for name, gradient in gradients.items():
            sums.setdefault(name, GradientSum(len(parameters))).add(gradient)

    values = {name: torch.stack([loss for losses in found for loss in losses.get(name, [])]) for name in sums}
    return ShardGradient(values, _finish(learner, parameters, batch, sums))


def _of_sets(
    learner: EpisodeLearner, shard: Sequence[Sequence[LabelledSet]], packed: PackedEncoder, bf16: bool
) -> ShardGradient:
    """Compute the same for a learner without inner steps: one pass over all texts, one backward pass per name."""
    row_of = numbered(text for episode in shard for examples in episode for text in texts_of(examples))
    batch = packed.lay_out([list(row_of)])

    def work(network: Network, _: int) -> tuple[Losses, dict[str, GradientSum]]:
        module = PackedModule(network, batch.cut(packed.weights), bf16)
        vectors = module(batch.texts[0])
        losses: Losses = {}
        for episode in shard:
            rows = [[row_of[text] for text in texts_of(examples)] for examples in episode]
            prepared = [prepare(packed.encoder, *pair) for pair in zip(episode, rows, strict=True)]
            # Without inner steps a model is only called.
            for name, loss in learner.losses(vectors.__getitem__, prepared):  # type: ignore[arg-type]
                losses.setdefault(name, []).append(loss)
        sums = {name: GradientSum(len(packed.weights)) for name in losses}
        for name, own in losses.items():
            # The graph is that of all names.
            total, weights = torch.stack(own).sum(), [*module.parameters()]
            sums[name].add(torch.autograd.grad(total, weights, allow_unused=True, retain_graph=len(losses) > 1))
        return losses, sums

    ((losses, sums),) = packed.each([0], work)
    values = {name: torch.stack(own).detach() for name, own in losses.items()}
    return ShardGradient(values, _finish(learner, packed.weights, batch, sums))


def _finish(
    learner: Learner, parameters: Sequence[Tensor], batch: PackedBatch, sums: dict[str, GradientSum]
) -> Callable[[Pulled], Gradient]:
    """Return what multiplies each name's sum with ∂L/∂v, once."""

    def finish(pulled: Pulled) -> Gradient:
        total = GradientSum(len(parameters))
        for name in list(sums):
            total.add(sums.pop(name).gradient, _factor(learner, name, pulled[name]))
        return _by_parameter(learner, parameters, batch.spread(total.gradient))

    return finish


def _factor(learner: Learner, name: str, pulled: Tensor | None) -> float:
    """Return ∂L/∂v, which must be equal for all losses v with one name, as their gradients share a sum.

    Slopes that are not finite may differ: NaN makes the whole gradient NaN, which the training loop refuses.
    """
    if pulled is None:
        return 0.0
    if not bool(pulled.isfinite().all()):
        return math.nan
    first = pulled[0].item()
    if not bool((pulled == first).all()):
        kind = type(learner).__name__
        raise ValueError(f"{kind}.combine weighs losses called '{name}' differently; {kind}.losses must weigh them")
    return float(first)


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
                total = added(total, _by_parameter(learner, packed.weights, gradient))
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


def _by_parameter(learner: Learner, parameters: Sequence[Tensor], gradient: Gradient) -> Gradient:
    """Return a gradient in the learner's parameter order, None for the others."""
    found = {id(parameter): one for parameter, one in zip(parameters, gradient, strict=True)}
    return [found.get(id(parameter)) for _, parameter in learner.named_parameters()]
