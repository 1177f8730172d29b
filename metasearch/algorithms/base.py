"""Base classes for learners.

A learner turns a meta-batch of episodes into one outer loss. It never takes the gradient of that loss, steps the
optimiser, or reads files: `metasearch.training` does so, once for all learners. Its module names the class `LEARNER`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.algorithms.inner_loop import Model, Rates
from metasearch.algorithms.losses.base import EmbeddedSet, fitting, losses_of
from metasearch.algorithms.sets import Forward, Prepared, numbered, prepare, vectors_of
from metasearch.config.base import FrozenConfig
from metasearch.config.recipe import Loss
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import EncoderError


@dataclass(frozen=True)
class OuterLoss:
    """A meta-batch's outer loss: a differentiable scalar, and named terms for logs."""

    total: Tensor
    terms: dict[str, float] = field(default_factory=dict)


Values = Mapping[str, Tensor]
"""The outer loss's arguments by name: episode losses `(N,)`, or text outputs `(N, D)`."""

Item = TypeVar("Item")


class Targets(Protocol):
    """A frozen encoder's outputs by text, read from files or computed."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, or of an output by token one for each token, text after text."""


@dataclass(frozen=True)
class TargetSpec:
    """A frozen encoder's outputs for a learner, with or without outputs for translations."""

    output: Output
    translations: bool


class Learner(ABC):
    """Base class for learners.

    Args:
        encoder: the encoder to train.
        loss: settings of the loss of a set.
        options: the learner's own hyper-parameters, an instance of its `Options`.
        targets: outputs of a frozen encoder, for a learner that needs them.

    Raises:
        EncoderError: all weights of the encoder are frozen.
    """

    Options: ClassVar[type[FrozenConfig]]
    links: ClassVar[tuple[int, ...]] = (2, 3)
    """Numbers of sets that an episode of this learner may have; with 1 it can be a stage of a distillation."""
    data: ClassVar[tuple[str, ...]] = ("scored",)
    """Kinds of data that it learns from as such a stage: `parallel`, `scored` or `entailment`."""

    def __init__(self, encoder: Encoder, loss: Loss, options: Any, targets: Targets | None = None) -> None:
        if not any(weight.requires_grad for weight in encoder.embedder.parameters()):
            raise EncoderError(
                f"{encoder.name}: all weights are frozen (requires_grad is False), so nothing can be trained; "
                "call model.requires_grad_(True) before making an encoder from the model"
            )
        self.encoder = encoder
        self.set_losses = losses_of(loss)
        self.options = options
        self.targets = targets

    @classmethod
    def wanted(cls, options: Any) -> TargetSpec | None:
        """Return the frozen encoder's outputs for these options; None if unused."""
        return None

    @abstractmethod
    def shards(self, episodes: Sequence[Episode], count: int) -> list[Any]:
        """Cut a meta-batch into `count` shards, which are computed one after another or by several processes."""

    @abstractmethod
    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return a meta-batch's outer loss, differentiable in the values from all shards, in order.

        It may also depend on parameters that the learner has beside the encoder.
        """

    @abstractmethod
    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return a meta-batch's outer loss on the encoder itself, with padded texts: a plain reference."""

    @property
    def second_order(self) -> bool:
        """Whether the outer gradient is taken through inner gradients."""
        return not getattr(self.options, "first_order", False)

    def attention(self) -> AbstractContextManager[None]:
        """Choose a kernel of attention that can be differentiated twice, if `second_order`."""
        return sdpa_kernel(SDPBackend.MATH) if self.second_order else nullcontext()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield what the outer optimiser updates; by default the encoder's trainable weights."""
        return ((n, p) for n, p in self.encoder.embedder.named_parameters() if p.requires_grad)

    @classmethod  # noqa: B027  (most learners have nothing to do here)
    def check_encoder(cls, options: Any, encoder: Encoder) -> None:
        """Raise `ConfigError` if options need a feature that the encoder, or its stand-in, lacks."""

    def begin(self, total_steps: int) -> None:  # noqa: B027
        """Store how many outer steps there are, before the first step or a resume."""

    def after_step(self) -> None:  # noqa: B027
        """Do what follows an outer step; nothing by default."""

    def state(self) -> dict[str, Tensor]:
        """Return the learner's state for a resume, beside its named parameters; empty by default."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Put back what `state` returned; KeyError or RuntimeError where it is another learner's or encoder's."""

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        self.encoder.embedder.train(mode)


class EpisodeLearner(Learner):
    """A learner whose outer loss combines losses per episode.

    Each episode is computed alone. `losses` yields a scalar, and its gradient is taken before the next scalar is
    computed. So memory does not grow with the number of episodes, and two scalars must not share a graph.

    Attributes:
        adapts: whether `losses` uses more of the model than a call; if not, all episodes may be encoded in one pass.
    """

    adapts = True

    @abstractmethod
    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterable[tuple[str, Tensor]]:
        """Yield an episode's losses, each with a name for `combine`.

        `model` is the encoder in learn2learn's MAML (`metasearch.algorithms.inner_loop`), `sets` the episode's labelled
        sets.
        """

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the mean over the meta-batch; with several names, their means' sum.

        Losses of one name must count alike: the training keeps one sum of gradients for each name.
        """
        means = {name: losses.mean() for name, losses in values.items()}
        first, *others = means.values()
        return OuterLoss(sum(others, start=first), {name: mean.item() for name, mean in means.items()})

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return a meta-batch's outer loss on the encoder itself."""
        model = Model(self.encoder.embedder, self.inner_lr, first_order=not self.second_order)
        found: dict[str, list[Tensor]] = {}
        with self.attention():
            for episode in episodes:
                for name, loss in self.losses(model, [prepare(self.encoder, examples) for examples in episode.sets]):
                    found.setdefault(name, []).append(loss)
        return self.combine({name: torch.stack(losses) for name, losses in found.items()}, episodes)

    def shards(self, episodes: Sequence[Episode], count: int) -> list[list[Sequence[LabelledSet]]]:
        """Return each shard's episodes, as lists with sets."""
        return [[episode.sets for episode in shard] for shard in contiguous(episodes, count)]

    @property
    def inner_lr(self) -> Rates:
        """The rate for `Model.adapt`: the option `inner_lr`."""
        return float(getattr(self.options, "inner_lr", 0.0))

    def adapted(self, model: Model, support: Prepared, steps: int) -> Model:
        """Return a copy of a model after inner steps on a support set (MAML-Align paper, Algorithm 2)."""
        copy = model.clone()
        for _ in range(steps):
            copy.adapt(self.loss(copy, support))
        return copy

    def loss(self, forward: Forward, examples: Prepared) -> Tensor:
        """Return a set's scalar loss, from the first loss that fits its examples."""
        return self.loss_of(vectors_of(forward, examples), examples)

    def loss_of(self, vectors: Sequence[Tensor], examples: Prepared) -> Tensor:
        """Return the same from tower vectors, each `(texts, D)`."""
        loss = fitting(self.set_losses, examples.columns)
        embedded = {name: vectors[tower][rows] for name, (tower, rows) in examples.columns.items()}
        texts = {name: rows for name, (_, rows) in examples.columns.items()}
        return loss(EmbeddedSet(embedded, texts, examples.gold, examples.answers))


def contiguous(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Return items in `count` stretches, as long as each other or by one item longer."""
    return [items[i * len(items) // count : (i + 1) * len(items) // count] for i in range(count)]


@dataclass(frozen=True)
class Reading:
    """Distinct texts to read; `frozen` is the encoder's network, copied without gradients, or None."""

    texts: Sequence[str]
    frozen: nn.Module | None = None


class Outputs:
    """Encoder outputs `(texts, D)` by text; of an output by token, a row for each token, text after text."""

    def __init__(self, texts: Sequence[str], rows: Tensor) -> None:
        self.texts, self.rows = texts, rows
        self._row = numbered(texts)

    def __getitem__(self, texts: Sequence[str]) -> Tensor:
        """Return the outputs for some texts, `(len(texts), D)`."""
        places = torch.tensor([self._row[text] for text in texts], dtype=torch.long, device=self.rows.device)
        return self.rows[places]


class TextLearner(Learner):
    """A learner that encodes a meta-batch's texts together, each distinct text once.

    Its options have `output`, the output of the encoder that is compared.
    """

    links = (1,)
    second_order = False

    def readings(self, pairs: Sequence[Any]) -> dict[str, Reading]:
        """Return the texts to read, by name for `combine`: `student` is trained."""
        return {"student": Reading(list(numbered(self.texts(pairs))))}

    def shards(self, episodes: Sequence[Episode], count: int) -> list[dict[str, Reading]]:
        """Return the texts to read in each shard; the loss needs the outputs from all shards."""
        shards: list[dict[str, Reading]] = [{} for _ in range(count)]
        for name, reading in self.readings(self.pairs(episodes)).items():
            for shard, texts in zip(shards, contiguous(reading.texts, count), strict=True):
                shard[name] = replace(reading, texts=texts)
        return shards

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return a meta-batch's outer loss on the encoder itself."""
        readings = self.readings(self.pairs(episodes))
        return self.combine({name: self._outputs(reading) for name, reading in readings.items()}, episodes)

    def _outputs(self, reading: Reading) -> Tensor:
        network = reading.frozen or self.encoder.embedder
        with torch.set_grad_enabled(torch.is_grad_enabled() and reading.frozen is None):
            outputs: Tensor = network(self.encoder.features(list(reading.texts), "text"), self.options.output)
        # In bfloat16 errors would be rounded away.
        return outputs.to(next(network.parameters()).dtype)

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss for all pairs in a meta-batch."""
        pairs = self.pairs(episodes)
        readings = self.readings(pairs).items()
        return self.loss(pairs, {name: Outputs(reading.texts, values[name]) for name, reading in readings})

    @abstractmethod
    def texts(self, pairs: Sequence[Any]) -> Iterable[str]:
        """Return the texts that the trained encoder reads."""

    @abstractmethod
    def loss(self, pairs: Sequence[Any], outputs: Mapping[str, Outputs]) -> OuterLoss:
        """Return the loss of pairs (examples of the meta-batch) from the encoder outputs."""

    def pairs(self, episodes: Sequence[Episode]) -> list[Any]:
        """Return the examples in a meta-batch, which are of the class's `data`."""
        return [example for episode in episodes for examples in episode.sets for example in examples.examples]
