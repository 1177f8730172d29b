"""What a learner is.

A learner turns a meta-batch of episodes into one outer loss. Gradients, steps, files and scores are the business of
`metasearch.learners.gradients` and of the training loop, once for all learners. Its module names the class `LEARNER`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder, Output
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import ConfigError, EncoderError
from metasearch.learners.adapt import ALL, Adaptation
from metasearch.learners.inner_loop import FastModel
from metasearch.learners.losses.base import Embedded, fitting, losses_of
from metasearch.learners.sets import Forward, Prepared, prepare
from metasearch.spec.declared import Declared
from metasearch.spec.recipe import Loss


@dataclass(frozen=True)
class OuterLoss:
    """The outer loss of a meta-batch: a scalar whose gradient is the outer gradient, and named terms for logs."""

    total: Tensor
    terms: dict[str, float] = field(default_factory=dict)


Values = list[Tensor]
"""What a shard of an outer step gives to its loss, such as the loss of each episode or the vectors of texts."""

Item = TypeVar("Item")


class Targets(Protocol):
    """Outputs of a frozen encoder by text, read from files or computed."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, or of an output by token one for each token, text after text."""


@dataclass(frozen=True)
class Wanted:
    """Which outputs of a frozen encoder a learner takes, and whether for translations too, beside pivot texts."""

    output: Output
    translations: bool


class Learner(ABC):
    """Base of all learners.

    Args:
        encoder: the encoder to train.
        loss: settings of the loss of a set.
        options: the learner's own hyper-parameters, an instance of its `Options`.
        targets: outputs of a frozen encoder, for a learner that takes some.

    Attributes:
        adaptation: which weights an inner loop moves: those that an option `adapt` says, or else all.

    Raises:
        ConfigError: the encoder has not what is to adapt.
        EncoderError: all weights of the encoder are frozen.
    """

    Options: ClassVar[type[Declared]]
    links: ClassVar[tuple[int, ...]] = (2, 3)
    """Numbers of sets that an episode of this learner may have; with 1 it can be a stage of a distillation."""
    data: ClassVar[tuple[str, ...]] = ("scored",)
    """Kinds of data that it learns from as such a stage: `parallel`, `scored` or `entailment`."""

    def __init__(self, encoder: Encoder, loss: Loss, options: Any, targets: Targets | None = None) -> None:
        if not any(weight.requires_grad for weight in encoder.embedder.parameters()):
            raise EncoderError(
                f"{encoder.name}: all of its weights are frozen (requires_grad is False), so that nothing can be "
                "trained; call model.requires_grad_(True) before making an encoder of the model"
            )
        self.encoder = encoder
        self.losses = losses_of(loss)
        self.options = options
        self.targets = targets
        self.adaptation = Adaptation(encoder, getattr(options, "adapt", ALL))

    @classmethod
    def wanted(cls, options: Any) -> Wanted | None:
        """Return which outputs of a frozen encoder it takes with these options; None when it takes none."""
        return None

    @abstractmethod
    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss of a meta-batch, differentiable in the learner's parameters."""

    @classmethod
    def check_shards(cls, count: int) -> None:
        """Raise `ConfigError` where its loss cannot be put together from so many shards, for want of `combine`."""
        if count > 1 and cls.combine is Learner.combine:
            name = cls.__module__.rpartition(".")[2].replace("_", "-")
            raise ConfigError(f"budget.shards: learner '{name}' does not say how its loss is cut; it takes 1")

    def shards(self, episodes: Sequence[Episode], count: int) -> list[Any]:
        """Return what each of `count` shards of an outer step works on, in their order: by default its episodes."""
        return contiguous(episodes, count)

    def values(self, shard: Any) -> Values:
        """Return what a shard gives to the loss of the meta-batch, differentiable in the learner's parameters."""
        raise NotImplementedError

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return the outer loss of a meta-batch from the values of all its shards, the same function as `outer_loss`.

        The outer gradient is Σ_s (∂v_s/∂θ)ᵀ ∂L/∂v_s, with v_s the values of shard s, and the gradient in parameters
        that the loss depends on beside them.
        """
        raise NotImplementedError

    def reported(self, loss: OuterLoss, gradient: Sequence[Tensor]) -> OuterLoss:
        """Return the loss of shards as it is logged, once the gradient is known, which is given as dense tensors."""
        return loss

    @property
    def second_order(self) -> bool:
        """Whether the outer gradient is taken through inner gradients.

        It is, unless the option `first_order` or a learner without inner gradients says otherwise: attention kernels
        that are wrongly avoided cost time, those that are wrongly used have no second derivative.
        """
        return not getattr(self.options, "first_order", False)

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield what the outer optimiser updates; by default the encoder's trainable weights."""
        return ((n, p) for n, p in self.encoder.embedder.named_parameters() if p.requires_grad)

    @classmethod  # noqa: B027  (most learners have nothing to do here)
    def check_steps(cls, options: Any, total_steps: int) -> None:
        """Raise `ConfigError` where options ask for a longer training than that of so many outer steps."""

    @classmethod  # noqa: B027
    def check_encoder(cls, options: Any, encoder: Encoder) -> None:
        """Raise `ConfigError` where options ask for what an encoder, or one that stands in for it, does not have."""

    def begin(self, total_steps: int) -> None:  # noqa: B027
        """Take note of the outer steps of the whole training, before its first step or before it is resumed."""

    def after_step(self) -> None:  # noqa: B027
        """Do what follows an outer step; nothing by default."""

    def state(self) -> dict[str, Tensor]:
        """Return what a resumed run needs of the learner beside its named parameters; nothing by default."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Put back what `state` returned; KeyError or RuntimeError where it is another learner's or encoder's."""

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        self.encoder.embedder.train(mode)

    def prepare(self, examples: LabelledSet) -> Prepared:
        """Return a set as tensors, for any copy of the encoder."""
        return prepare(self.encoder, examples)

    def loss(self, forward: Forward, examples: Prepared) -> Tensor:
        """Return the scalar loss of a set: that of the first loss that fits its examples."""
        loss = fitting(self.losses, examples.columns)
        vectors = [forward(tower) for tower in examples.towers]
        embedded = {name: vectors[tower][rows] for name, (tower, rows) in examples.columns.items()}
        texts = {name: rows for name, (_, rows) in examples.columns.items()}
        return loss(Embedded(embedded, texts, examples.gold, examples.answers))

    def adapted(
        self, support: Prepared, steps: int, lr: float | Sequence[Tensor], start: nn.Module | None = None
    ) -> FastModel:
        """Return fast weights after inner steps on a support set (MAML-Align paper, Algorithm 2).

        They start from those of `start`, by default the encoder's; `lr` may be a tensor for each weight that adapts.
        """
        fast = self.fast(start)
        for _ in range(steps):
            fast.adapt(self.loss(fast, support), self.adaptation.rates(lr))
        return fast

    def fast(self, start: nn.Module | None = None) -> FastModel:
        """Return fast weights before any step, of `start` or the encoder, whose rates are `adaptation.rates`."""
        return FastModel(self.adaptation.around(start or self.encoder.embedder), first_order=not self.second_order)


def contiguous(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Return items in `count` stretches, as long as each other or by one item longer."""
    return [items[i * len(items) // count : (i + 1) * len(items) // count] for i in range(count)]


def reduce(losses: Sequence[Tensor], how: str) -> Tensor:
    """Return the sum or the mean of scalars."""
    total = sum(losses[1:], start=losses[0])
    return total / len(losses) if how == "mean" else total
