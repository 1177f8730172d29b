"""What a learner is.

A learner turns a meta-batch of episodes into one outer loss, and leaves its gradient with the parameters. It never
reads files, prints, evaluates, or calls `optimizer.step()`: the engine does that, once for all learners. Its module
names the class `LEARNER`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.encoders.encoder import Encoder, Output
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.fast import Fast, Parts
from metasearch.fast.meta_batch import MetaBatch
from metasearch.learners.inner_loop import FastModel
from metasearch.learners.sets import Forward, Prepared, prepare, set_loss
from metasearch.learners.targets import Targets, Wanted
from metasearch.spec.recipe import Declared, Loss


@dataclass(frozen=True)
class OuterLoss:
    """What a learner returns for a meta-batch.

    Attributes:
        total: scalar whose gradient is the outer gradient.
        terms: its named parts, for logs.
    """

    total: Tensor
    terms: dict[str, float] = field(default_factory=dict)


class Learner(ABC):
    """Base of all learners.

    Args:
        encoder: what is trained.
        loss: settings of the loss of a set.
        options: the learner's own hyper-parameters, an instance of its `Options`.
        targets: outputs of a frozen encoder, for a learner that wants some.
    """

    Options: ClassVar[type[Declared]]
    links: ClassVar[tuple[int, ...]] = (2, 3)
    """Numbers of sets that an episode of this learner may have; with 1 it can be a stage of a distillation."""
    data: ClassVar[tuple[str, ...]] = ("scored",)
    """Kinds of data that it learns from as such a stage: `parallel`, `scored` or `entailment`."""

    def __init__(self, encoder: Encoder, loss: Loss, options: Any, targets: Targets | None = None) -> None:
        self.encoder = encoder
        self.settings = loss
        self.options = options
        self.targets = targets
        self.fast: Fast | None = None

    @classmethod
    def wanted(cls, options: Any) -> Wanted | None:
        """Return which outputs of a frozen encoder it takes with these options; None when it takes none."""
        return None

    @abstractmethod
    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss of a meta-batch, differentiable in the learner's parameters."""

    def outer_gradient(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Put the gradient of the outer loss into the `.grad` of the learner's parameters, and return the loss.

        A gradient that is zero but in some rows may be a coalesced sparse tensor of those rows. A parameter that the
        loss does not depend on keeps its `.grad` as it is.
        """
        kind = self.encoder.device.type
        if self.fast is not None:
            with self.attention():
                bf16 = torch.is_autocast_enabled(kind)
                with torch.autocast(kind, enabled=False):
                    if (found := self.fast_gradient(episodes, self.fast, bf16)) is not None:
                        return found
        loss = self.outer_loss(episodes)
        with torch.autocast(kind, enabled=False):  # a backward pass runs in the types of its forward
            torch.autograd.backward(loss.total)
        return OuterLoss(loss.total.detach(), loss.terms)

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss | None:
        """Do what `outer_gradient` says on the fast engine; None where a learner has no such form, the default.

        Args:
            episodes: of the meta-batch.
            fast: engine of the encoder.
            bf16: run forward passes in bfloat16.
        """
        return None

    def use(self, fast: Fast) -> Self:
        """Take the fast engine for outer gradients; returns itself."""
        self.fast = fast
        return self

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield what the outer optimiser updates; by default the encoder's trainable weights."""
        return ((n, p) for n, p in self.encoder.embedder.named_parameters() if p.requires_grad)

    def begin(self, total_steps: int) -> None:  # noqa: B027  (most learners have nothing to do here)
        """Hear how many outer steps the whole training has, before its first or before it is resumed."""

    def after_step(self) -> None:  # noqa: B027
        """Do what follows an outer step; nothing by default."""

    def state(self) -> dict[str, Tensor]:
        """Return what a resumed run needs of the learner beside its named parameters; nothing by default."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Put back what `state` returned.

        Raises:
            KeyError, RuntimeError: it is not the state of this learner and encoder.
        """

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        self.encoder.embedder.train(mode)

    @property
    def second_order(self) -> bool:
        """Whether the outer gradient is taken through inner gradients."""
        return not getattr(self.options, "first_order", True)

    def attention(self) -> AbstractContextManager[Any]:
        """Return the context that forward passes need.

        Fused attention kernels have no second derivative, so in second order the plain one runs.
        """
        return sdpa_kernel(SDPBackend.MATH) if self.second_order else nullcontext()

    @property
    def weights(self) -> list[nn.Parameter]:
        """The encoder's trainable weights."""
        return [weight for weight in self.encoder.embedder.parameters() if weight.requires_grad]

    def laid_out(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> MetaBatch:
        """Return a meta-batch for the fast engine."""
        return MetaBatch(fast, episodes, self.loss, bf16)

    def of_texts(
        self,
        fast: Fast,
        texts: Sequence[str],
        output: Output,
        bf16: bool,
        outer: Callable[[Tensor], OuterLoss],
        beside: Sequence[nn.Parameter] = (),
    ) -> OuterLoss:
        """Put the gradient of a loss of the outputs of texts into `.grad`; for learners without inner steps.

        On a CPU, texts are encoded in parts on several threads.

        Args:
            fast: engine of the encoder.
            texts: distinct ones.
            output: of the encoder.
            bf16: run the forward pass in bfloat16.
            outer: the loss of the outputs, a row for each text.
            beside: further parameters that the loss depends on.
        """
        parts = Parts(fast, texts, output, bf16)
        losses: list[OuterLoss] = []

        def total(outputs: Tensor) -> Tensor:
            losses.append(outer(outputs))
            return losses[0].total

        gradient, others = parts.gradient(parts.batch.weights(self.weights), total, beside)
        parts.batch.put(gradient, self.weights)
        for parameter, found in zip(beside, others, strict=True):
            if found is not None:
                parameter.grad = found if parameter.grad is None else parameter.grad + found
        (loss,) = losses
        return OuterLoss(loss.total.detach(), loss.terms)

    def prepare(self, examples: LabelledSet) -> Prepared:
        """Return a set as tensors, ready for any copy of the encoder."""
        return prepare(self.encoder, examples)

    def loss(self, forward: Forward, examples: Prepared) -> Tensor:
        """Return the scalar loss of a set."""
        return set_loss(forward, examples, self.settings)

    def adapted(
        self, support: Prepared, steps: int, lr: float | Sequence[Tensor], start: nn.Module | None = None
    ) -> FastModel:
        """Return fast weights after some inner steps on a support set (MAML-Align paper, Algorithm 2).

        Args:
            support: the set.
            steps: how many inner steps.
            lr: their rate, or one for each trainable weight.
            start: the module they start from; the encoder's by default.
        """
        fast = FastModel(start or self.encoder.embedder, first_order=not self.second_order)
        for _ in range(steps):
            fast.adapt(self.loss(fast, support), lr)
        return fast


def reduce(losses: Sequence[Tensor], how: str) -> Tensor:
    """Return the sum or the mean of scalars."""
    total = sum(losses[1:], start=losses[0])
    return total / len(losses) if how == "mean" else total
