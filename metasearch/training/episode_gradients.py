"""Losses and gradients of a shard's episodes.

Episodes are computed in passes:

- One episode a pass, on weights of its own: the gradient of each loss is taken before the next loss is computed. So
  memory does not grow with the number of episodes. On a CPU, threads compute several passes at a time.
- Several episodes a pass, for learners without inner steps on a GPU: the texts of all are encoded once.

There is one sum of gradients for each name of losses, which is multiplied with ∂L/∂v at the end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner, Learner, Values, contiguous
from metasearch.algorithms.inner_loop import Gradient, Model, Rates
from metasearch.algorithms.sets import numbered, prepare, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import LabelledSet
from metasearch.training.distributed import GradientSum, added
from metasearch.training.packing.encoder import PackedBatch, PackedEncoder
from metasearch.training.packing.layout import Group, PackedTexts
from metasearch.training.packing.network import Network, PackedModule

Pulled = Mapping[str, Tensor | None]
"""A shard's ∂L/∂v, by name; None where L does not depend on them."""


@dataclass(frozen=True)
class ShardGradient:
    """A shard's values without a graph, and `finish`, which returns its gradient from ∂L/∂v."""

    values: Values
    finish: Callable[[Pulled], Gradient]


def of_episodes(
    learner: EpisodeLearner, shard: Sequence[Sequence[LabelledSet]], packed: PackedEncoder, bf16: bool, together: int
) -> ShardGradient:
    """Compute losses for a shard's episodes, up to `together` in a pass, and a gradient sum per name."""
    size = together if not learner.adapts else 1
    shares = contiguous(shard, -(-len(shard) // size))
    passes = [EpisodePass(learner, packed.encoder, episodes, together > 1) for episodes in shares]
    batch = packed.lay_out([group for each in passes for group in each.groups])
    ready = iter(batch.texts)
    texts = [[next(ready) for _ in each.groups] for each in passes]
    rates = learner.inner_lr
    # Rates that are learned have the shapes of the weights, and gradients like them.
    own = [*rates] if isinstance(rates, Sequence) else []
    parameters = [*packed.weights, *own]
    starts, count = batch.cut(parameters), len(packed.weights)

    def work(network: Network, number: int) -> Computed:
        # Each pass has leaves of its own, which share the memory of the starting values.
        module = PackedModule(network, starts[:count], bf16)
        learned = [start.detach().requires_grad_() for start in starts[count:]]
        leaves = Leaves(module, learned, learned if own else rates)
        return passes[number].compute(leaves, texts[number])

    # Longest first, as passes on threads wait for each other and should be about as long.
    order = sorted(range(len(passes)), key=lambda number: -sum(part.tokens for part in texts[number]))
    losses: dict[int, list[NamedLoss]] = {}
    sums: dict[str, GradientSum] = {}
    for begin in range(0, len(order), packed.workers):
        turn = order[begin : begin + packed.workers]
        for number, computed in zip(turn, packed.each(turn, work), strict=True):
            losses[number] = computed.losses
            for name, gradient in computed.gradients.items():
                sums.setdefault(name, GradientSum(len(parameters))).add(gradient)

    found = [pair for number in sorted(losses) for pair in losses[number]]
    values = {name: torch.stack([loss for own_name, loss in found if own_name == name]) for name in sums}
    return ShardGradient(values, partial(_finish, learner, parameters, batch, sums))


NamedLoss = tuple[str, Tensor]


@dataclass(frozen=True)
class Computed:
    """A pass's losses, episode after episode and without graphs, and the gradient of the sum of each name's losses."""

    losses: list[NamedLoss]
    gradients: dict[str, Gradient]


@dataclass(frozen=True)
class Leaves:
    """The network with the starting weights, learned inner rates, and what `Model` is given as its rates."""

    module: PackedModule
    learned: Sequence[Tensor]
    rates: Rates

    def gradient(self, loss: Tensor, keep: bool = False) -> Gradient:
        """Return a loss's gradient in weights and learned rates; with `keep`, its graph stays."""
        leaves = [*self.module.parameters(), *self.learned]
        return [*torch.autograd.grad(loss, leaves, allow_unused=True, retain_graph=keep)]


class EpisodePass:
    """Episodes that are computed together: one, or with `one_pass` several without inner steps."""

    def __init__(
        self, learner: EpisodeLearner, encoder: Encoder, episodes: Sequence[Sequence[LabelledSet]], together: bool
    ) -> None:
        self._learner, self._encoder, self._episodes = learner, encoder, episodes
        self._at_once = together and not learner.adapts

    @cached_property
    def groups(self) -> list[Group]:
        """Texts to encode together: each set is a group, or all sets are one."""
        sets = [texts_of(examples) for episode in self._episodes for examples in episode]
        return [list(numbered(text for texts in sets for text in texts))] if self._at_once else [*sets]

    def compute(self, leaves: Leaves, texts: Sequence[PackedTexts]) -> Computed:
        """Return losses and gradients, from texts that are laid out in `groups`."""
        if self._at_once:
            return self._from_vectors(leaves, leaves.module(texts[0]))
        (episode,) = self._episodes
        sets = [prepare(self._encoder, *pair) for pair in zip(episode, texts, strict=True)]
        model = Model(leaves.module, leaves.rates, not self._learner.second_order)
        losses: list[NamedLoss] = []
        gradients: dict[str, Gradient] = {}
        for name, loss in self._learner.losses(model, sets):
            losses.append((name, loss.detach()))
            gradient = leaves.gradient(loss)
            gradients[name] = added(gradients[name], gradient) if name in gradients else gradient
        return Computed(losses, gradients)

    def _from_vectors(self, leaves: Leaves, vectors: Tensor) -> Computed:
        """Return the same from the vectors of all texts, with one backward pass per name."""
        (group,) = self.groups
        row_of = {text: row for row, text in enumerate(group)}
        losses: list[NamedLoss] = []
        for episode in self._episodes:
            rows = [[row_of[text] for text in texts_of(examples)] for examples in episode]
            sets = [prepare(self._encoder, *pair) for pair in zip(episode, rows, strict=True)]
            # Without inner steps a model is only called.
            losses += self._learner.losses(vectors.__getitem__, sets)  # type: ignore[arg-type]
        named: dict[str, list[Tensor]] = {}
        for name, loss in losses:
            named.setdefault(name, []).append(loss)
        # The graph is that of all names.
        keep = len(named) > 1
        gradients = {name: leaves.gradient(torch.stack(own).sum(), keep) for name, own in named.items()}
        return Computed([(name, loss.detach()) for name, loss in losses], gradients)


def _finish(
    learner: Learner, parameters: Sequence[Tensor], batch: PackedBatch, sums: dict[str, GradientSum], pulled: Pulled
) -> Gradient:
    """Return the gradient: each name's sum times ∂L/∂v, which is taken once."""
    total = GradientSum(len(parameters))
    for name in list(sums):
        total.add(sums.pop(name).gradient, _factor(learner, name, pulled[name]))
    return by_parameter(learner, parameters, batch.spread(total.gradient))


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


def by_parameter(learner: Learner, parameters: Sequence[Tensor], gradient: Gradient) -> Gradient:
    """Return a gradient in the learner's parameter order, None for the others."""
    found = {id(parameter): one for parameter, one in zip(parameters, gradient, strict=True)}
    return [found.get(id(parameter)) for _, parameter in learner.named_parameters()]
