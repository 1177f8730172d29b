"""Gradients of trainings and their reference: small encoders, batches of awkward texts, and whole outer gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice

import numpy as np
import torch
from torch import Tensor, nn
from transformers.models.modernbert import modeling_modernbert
from transformers.models.modernbert.modeling_modernbert import rotate_half

from helpers.backbones import HIDDEN, make
from helpers.padded import padded
from helpers.small import episode_of
from metasearch.algorithms.base import Learner, OuterLoss, TargetSpec
from metasearch.compress.student import make_student
from metasearch.config import registry
from metasearch.config.recipe import Loss
from metasearch.config.seeding import stream
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.maps import estimate
from metasearch.encoders.neutral import append
from metasearch.encoders.protocols import CachedEncoder
from metasearch.episodes.episode import Episode
from metasearch.training.outer_gradients import OuterGradients

FAMILIES = (
    "xlm-roberta", "bert", "mpnet", "distilbert", "modernbert", "student", "tiny", "neutral", "adapter",
)  # fmt: skip
INNER_LR = 0.05
TRIPLET = Loss()
SUPPORT, QUERY = 3, 2

LONG = "the old key under the mat by the door of the old house " * 4  # more tokens than the limit
AWKWARD = ("", "x", LONG, "[PAD]", "κλειδί [PAD] กุญแจ", "أين المفتاح؟ 🗝️")
TEXTS = (
    *("Where is the key?", AWKWARD[0], "the key is under the bridge near the river", AWKWARD[1], AWKWARD[2]),
    *(AWKWARD[3], "das alte Haus am Meer", AWKWARD[4], "a mat", AWKWARD[5], "ο σκύλος κοιμάται", "the key is old"),
)
"""What the examples of an episode are made of, from a place of its own on and round again."""


@cache
def encoder_of(family: str, dtype: torch.dtype = torch.float64, layers: int = 1, device: str = "cpu") -> Encoder:
    """Return a small encoder of a family, which nothing may change; every weight is drawn but in the built-in one."""
    if family == "tiny":
        made = tiny.build(make("bert", layers=1).max_length)
    elif family == "student":
        made = make_student(make("xlm-roberta", layers=2 * layers), bottleneck=6, recurrent=layers)
    elif family == "modernbert":
        _rotate_in_float64()
        made = make(family, layers=2 * layers)  # one of them attends to few tokens
    else:
        made = make("bert" if family in ("neutral", "adapter") else family, layers=layers)
    if family != "tiny":
        _spread(made.embedder)
    if family == "neutral":  # a linear map between two modules that normalise
        drawn = np.random.default_rng(0).normal(size=(3, 20, HIDDEN)) + np.eye(3, HIDDEN)[:, None]
        append(made, estimate(dict(zip("abc", drawn, strict=True))))
    made.embedder.to(device, dtype)
    if family == "adapter":
        made = AdaptedEncoder(made, MatrixAdapter(HIDDEN), pairs=True, vectors=CachedEncoder(made))
        drawn = stream(0, "adapter").normal(scale=0.2, size=(HIDDEN, HIDDEN))
        made.adapter.delta.data.copy_(torch.from_numpy(drawn))
    return made


def _rotate_in_float64() -> None:
    """Let ModernBERT turn queries and keys in float64 where they are; it is not put back, as nothing else changes."""
    modeling_modernbert.apply_rotary_pos_emb = _rotated


def _rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Turn queries and keys as transformers does, which rounds what is float64, gradients too, to float32.

    So sums of gradients and gradients of sums differ by 1e-8 there, whatever computes them.
    """
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    turned = []
    for each in (query, key):
        wide = each.to(torch.promote_types(each.dtype, torch.float32))
        turned.append((wide * cos + rotate_half(wide) * sin).to(each.dtype))
    return turned[0], turned[1]


@torch.no_grad()
def _spread(network: nn.Module) -> None:
    """Take 1 from the biases, which are drawn around it: it would make all texts alike, and inner steps without use."""
    for name, weight in network.named_parameters():
        if name.endswith("bias"):
            weight -= 1


def episode(number: int, kind: str = "triplets", sizes: Sequence[int] = (SUPPORT, QUERY)) -> Episode:
    """Return an episode of `len(sizes)` sets of these sizes; texts stand in several of its sets, and in others' too."""
    return episode_of([islice(cycle(TEXTS), 5 * number, None)] * len(sizes), kind, sizes)


@dataclass(frozen=True)
class Case:
    """A learner, the options that the contract gives it, and the episodes that it learns from."""

    learner: str
    kind: str = "triplets"
    sizes: tuple[int, ...] = (SUPPORT, QUERY)
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        """What the case is called in reports."""
        return " ".join([self.learner, *(f"{name}={value}" for name, value in self.options)])

    def episodes(self, count: int = 2) -> list[Episode]:
        """Return a meta-batch."""
        return [episode(i, self.kind, self.sizes) for i in range(count)]

    def learn(self, encoder: Encoder, loss: Loss = TRIPLET, **options: object) -> Learner:
        """Return the learner; it has inner steps of its own where it takes any."""
        cls = registry.load("learners", self.learner).LEARNER
        fields = cls.Options.model_fields
        given = dict(self.options) | {name: value for name, value in options.items() if name in fields}
        if "inner_lr" in fields:
            given.setdefault("inner_lr", INNER_LR)
        chosen = cls.Options(**given)
        if wanted := cls.wanted(chosen):
            return cls(encoder, loss, chosen, Given(encoder, wanted))
        return cls(encoder, loss, chosen)


THREE = (SUPPORT, QUERY, QUERY)
STEPPING = [Case("maml"), Case("meta-sgd"), Case("maml-align", sizes=THREE)]
REPTILE = Case("reptile")
PLAIN = [
    Case("fine-tune"),
    Case("fine-tune", "pairs", (SUPPORT,)),
    Case("distill", "translations", (4,), (("output", "pooled"), ("contrast", "soft"))),
    Case("distill", "translations", (4,), (("output", "sentence"), ("target", "own"))),
    Case("distill", "translations", (4,), (("output", "embedding"),)),
    Case("ema", "translations", (4,), (("output", "pooled"),)),
    Case("ema", "translations", (4,), (("output", "sentence"),)),
    Case("entailment", "entailments", (4,), (("output", "pooled"),)),
    Case("entailment", "entailments", (4,), (("output", "sentence"),)),
    Case("distill", "translations", (4,), (("output", "states"), ("target", "own"))),
]


class Given:
    """Targets drawn for each text, or for each of its tokens."""

    def __init__(self, encoder: Encoder, wanted: TargetSpec) -> None:
        self._encoder, self._output = encoder, wanted.output

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        lengths = self._encoder.lengths(texts, "text") if self._output == "states" else [1] * len(texts)
        width = self._encoder.dimension(self._output)
        rows = [stream(0, "target", t).normal(size=(n, width)) for t, n in zip(texts, lengths, strict=True)]
        return np.concatenate(rows).astype(np.float32)


@dataclass(frozen=True)
class Outer:
    """What an outer gradient is: the loss, its terms, and `.grad` of each parameter as it was left."""

    loss: Tensor
    terms: dict[str, float]
    given: dict[str, Tensor | None]

    @property
    def dense(self) -> dict[str, Tensor]:
        """The gradients that there are, as dense tensors."""
        return {
            name: found.to_dense() if found.is_sparse else found
            for name, found in self.given.items()
            if found is not None
        }


Gradients = Callable[[Learner, Sequence[Episode]], OuterLoss]


def outer(learner: Learner, episodes: Sequence[Episode], gradients: Gradients = padded) -> Outer:
    """Return the outer gradient."""
    parameters = dict(learner.named_parameters())
    for parameter in parameters.values():
        parameter.grad = None
    loss = gradients(learner, episodes)
    return Outer(loss.total, loss.terms, {name: parameter.grad for name, parameter in parameters.items()})


def on_both(learner: Learner, episodes: Sequence[Episode], **given: object) -> tuple[Outer, Outer]:
    """Return the outer gradient by the reference, and that of a training."""
    return outer(learner, episodes), outer(learner, episodes, OuterGradients(learner.encoder, **given))


def error(found: Outer, expected: Outer) -> float:
    """Return ‖found − expected‖ / ‖expected‖ of the gradients of all parameters together, in float64."""
    mine, wanted = found.dense, expected.dense
    assert mine.keys() == wanted.keys()
    off = torch.stack([(mine[name] - value).double().norm() for name, value in wanted.items()]).norm()
    return (off / torch.stack([value.double().norm() for value in wanted.values()]).norm()).item()


def errors(found: Outer, expected: Outer) -> dict[str, float]:
    """Return ‖found − expected‖ of each parameter, relative to the larger of its own norm and 1e-4 of the whole one.

    The key biases of attention have no gradient but rounding, so their own norm alone says nothing.
    """
    whole = torch.stack([value.norm() for value in expected.dense.values()]).norm()
    return {
        name: ((found.dense[name] - value).norm() / torch.maximum(value.norm(), 1e-4 * whole)).item()
        for name, value in expected.dense.items()
    }
