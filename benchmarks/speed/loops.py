"""The loops that `throughput.py` compares: ours, learn2learn's plain one, and one in the style of the paper's authors.

All take the same steps on the same meta-batches from the same weights. Texts are tokenised before the clock starts; the
peers' are also padded and stacked beforehand, as the authors' are.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.speed.shapes import Setting
from metasearch.algorithms.base import EpisodeLearner, Learner, OuterLoss
from metasearch.algorithms.inner_loop import Model, maml
from metasearch.algorithms.losses.base import EmbeddedSet, losses_of
from metasearch.algorithms.sets import Prepared
from metasearch.config.recipe import Outer
from metasearch.config.roles import Role
from metasearch.config.run import Checkpointing
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Features
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import NonFiniteError
from metasearch.pipelines.factory import make_learner
from metasearch.training import optimizer
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.trainer import clip, norm_of, rows_or_all

Towers = tuple[Features, Features, Features]
"""Questions, positives and negatives of a set, each padded to the limit of its role."""
Watch = Callable[[Sequence[Tensor]], object]


class Loop(Protocol):
    """Trains an encoder, a whole outer step at a time."""

    optimizer: torch.optim.Optimizer
    parameters: dict[str, nn.Parameter]

    def step(self, number: int) -> None:
        """Take the step of a meta-batch, optimiser included."""


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


class Ours:
    """The step of `metasearch train`.

    `plain` takes the learner's formula on three towers, padded to the limits, each text as often as it occurs.
    """

    def __init__(
        self,
        setting: Setting,
        encoder: Encoder,
        batches: Sequence[list[Episode]],
        checkpointing: Checkpointing = "off",
        plain: bool = False,
        bf16: bool = False,
    ) -> None:
        learner = make_learner(setting.recipe, encoder)
        gradients = Plain(encoder, batches) if plain else OuterGradients(encoder, checkpointing=checkpointing)
        learner.begin(len(batches))
        self._device, self._bf16 = encoder.device.type, bf16
        self._outer_step = OuterStep(learner, gradients, setting.recipe.outer, setting.recipe.dropout)
        self._batches = batches
        self.optimizer = self._outer_step.optimizer
        self.parameters = self._outer_step.parameters

    def step(self, number: int) -> None:
        """Take the step of a meta-batch."""
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bf16):
            self._outer_step(self._batches[number])


class Plain:
    """Takes outer gradients by the learner's formula and one `backward`, on texts as the peers have them."""

    def __init__(self, encoder: Encoder, batches: Sequence[list[Episode]]) -> None:
        sets = {id(s): s for batch in batches for episode in batch for s in episode.sets}
        self._encoder = encoder
        self._prepared = {key: in_three_towers(encoder, examples) for key, examples in sets.items()}

    def __call__(self, learner: EpisodeLearner, episodes: Sequence[Episode]) -> OuterLoss:
        """Add the gradient to `.grad`, and return the loss."""
        model = Model(self._encoder.embedder, learner.inner_lr, first_order=not learner.second_order)
        found: dict[str, list[Tensor]] = {}
        for episode in episodes:
            for name, loss in learner.losses(model, [self._prepared[id(examples)] for examples in episode.sets]):
                found.setdefault(name, []).append(loss)
        loss = learner.combine({name: torch.stack(losses) for name, losses in found.items()}, episodes)
        loss.total.backward()
        return loss


class Peer:
    """learn2learn's plain loop: clone, adapt, query loss, for all tasks; then one backward, and AdamW.

    Three towers are encoded, each text as often as it occurs, padded to the limits of the task. AdamW is torch's plain
    one in its faster form (`foreach`). In second order attention is the eager one, since the fused kernel has no second
    derivative, and each task is followed by its own backward, which favours this loop: all graphs at once do not fit.
    `watch` sees the vectors of each forward pass.
    """

    def __init__(
        self, setting: Setting, encoder: Encoder, batches: Sequence[list[Episode]], watch: Watch | None = None
    ) -> None:
        recipe = setting.recipe
        self.steps, self.loss = recipe.options["inner_steps"], losses_of(recipe.loss)[0]
        self.first_order = recipe.options["first_order"]
        self.watch = watch
        if not self.first_order:
            encoder.model[0].auto_model.set_attn_implementation("eager")
        wrapper, _ = maml()
        self.maml = wrapper(encoder.embedder, lr=recipe.options["inner_lr"], first_order=self.first_order)
        self.parameters = dict(encoder.embedder.named_parameters())
        self.batches = [
            [tuple(towers(encoder, examples) for examples in episode.sets) for episode in batch] for batch in batches
        ]
        outer = recipe.outer
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=outer.lr, eps=outer.eps, weight_decay=outer.weight_decay, foreach=True
        )

    def step(self, number: int) -> None:
        """Take the step of a meta-batch."""
        self.optimizer.zero_grad(set_to_none=True)
        batch = self.batches[number]
        losses = []
        for support, query in batch:
            fast = self.maml.clone()
            for _ in range(self.steps):
                fast.adapt(self._loss(fast, support), allow_unused=True)
            losses.append(self._loss(fast, query) / len(batch))
            if not self.first_order:
                losses.pop().backward()
        if losses:
            torch.autograd.backward(torch.stack(losses).sum())
        self.optimizer.step()

    def _loss(self, fast: nn.Module, examples: Towers) -> Tensor:
        vectors = [fast(features) for features in examples]
        if self.watch:
            self.watch(vectors)
        return self.loss(EmbeddedSet(dict(zip(self.loss.columns, vectors, strict=True))))


def as_the_authors(vectors: Sequence[Tensor]) -> float:
    """Do what the MAML-Align paper's code does after each forward pass: score a ranking, and collect garbage.

    Vectors are copied to numpy and compared one pair at a time. The score is the precision of the first place, for
    which that code takes candidate 0 as the answer to every question.
    """
    questions, positives, negatives = (tower.detach().cpu().numpy() for tower in vectors)
    candidates = np.concatenate([positives, negatives])
    hits = 0.0
    for question in questions:
        scores = [float(np.dot(question, candidate)) for candidate in candidates]
        ranking = sorted(range(len(scores)), key=lambda i: -scores[i])
        hits += float(ranking[0] == 0)
    gc.collect()
    return hits / len(questions)


def in_three_towers(encoder: Encoder, examples: LabelledSet) -> Prepared:
    """Return a set for our reference, laid out as the peers have it."""
    rows = torch.arange(len(examples.examples))
    names = ("question", "positive", "negative")
    return Prepared(towers(encoder, examples), {name: (tower, rows) for tower, name in enumerate(names)})


def towers(encoder: Encoder, examples: LabelledSet) -> Towers:
    """Return the three towers of a set of triplets."""
    triplets = examples.examples
    return (
        padded(encoder, [t.question.text for t in triplets], "question"),
        padded(encoder, [t.positive.text for t in triplets], "candidate"),
        padded(encoder, [t.negative.text for t in triplets], "candidate"),
    )


def padded(encoder: Encoder, texts: Sequence[str], role: Role) -> Features:
    """Return features `(B, T)` with T the limit of the role, whatever the longest text is."""
    features = encoder.features(texts, role)
    fill = {"input_ids": encoder.model.tokenizer.pad_token_id}
    limit = encoder.limit(role)
    return {key: F.pad(x, (0, limit - x.shape[1]), value=fill.get(key, 0)) for key, x in features.items()}
