"""A small float64 encoder with the traps that real ones set, and small episodes for it.

Its network holds a parameter that no loss reaches (a pooler), one that two layers share, and a frozen one. It is
smooth, so that gradients can be compared to many digits.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.backbones import make
from metasearch.config.arrangement import Arrangement
from metasearch.config.seeding import stream
from metasearch.data.entailment import EntailmentPair
from metasearch.data.records import Candidate, Question, ScoredPair, Translation
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.episodes.episode import Episode, LabelledSet, Triplet

VOCABULARY, TOKENS, HIDDEN = 13, 4, 5
UNUSED = ("pooler.weight", "pooler.bias")


class SmallNet(nn.Module):
    """Token ids `(B, TOKENS)` → unit vectors `(B, HIDDEN)`."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.scale = nn.Parameter(torch.full((HIDDEN,), 0.9), requires_grad=False)
        self.first = nn.Linear(HIDDEN, HIDDEN)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.second.weight = self.first.weight
        self.pooler = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        hidden = self.tokens(features["input_ids"]).mean(dim=1) * self.scale
        hidden = torch.tanh(self.first(hidden))
        return F.normalize(hidden + torch.tanh(self.second(hidden)), dim=-1)


class SmallEncoder:
    """What learners use of `metasearch.encoders.encoder.Encoder`, around `SmallNet`."""

    def __init__(self, seed: int = 0) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedder = SmallNet().double()
        self.rows_encoded = 0
        self.embedder.register_forward_hook(self._count)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def features(self, texts: Sequence[str], role: str) -> dict[str, Tensor]:
        """Give each text of a role its own token ids, the same in every process."""
        digests = (hashlib.sha256(f"{role}: {text}".encode()).digest() for text in texts)
        return {"input_ids": torch.tensor([[byte % VOCABULARY for byte in digest[:TOKENS]] for digest in digests])}

    def encode(self, texts: Sequence[str], role: str) -> np.ndarray:
        with torch.no_grad():
            return self.embedder(self.features(texts, role)).float().numpy()

    def _count(self, module: nn.Module, inputs: tuple, output: Tensor) -> None:
        self.rows_encoded += len(output)


class Drawn:
    """Unit vectors drawn for each text of a role, whatever stands beside it."""

    def __init__(self, dimension: int) -> None:
        self.dimension, self.device = dimension, torch.device("cpu")

    def encode(self, texts: Sequence[str], role: str) -> np.ndarray:
        rows = [stream(0, role, text).normal(size=self.dimension) for text in texts]
        return np.stack([row / np.linalg.norm(row) for row in rows])


def adapted_encoder(pairs: bool = True) -> AdaptedEncoder:
    """Return a frozen encoder whose vectors are drawn, with an adapter in float64 away from its start."""
    base = make("bert", layers=1)
    base.embedder.double()
    adapter = MatrixAdapter(base.dimension())
    encoder = AdaptedEncoder(base, adapter, pairs, Drawn(base.dimension()))
    for name, weight in adapter.named_parameters():
        weight.data += torch.from_numpy(stream(0, "adapter", name).normal(scale=0.2, size=weight.shape))
    return encoder


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / ((a * a).sum().sqrt() * (b * b).sum().sqrt())


def triplets(texts: Iterator[str], size: int) -> list[Triplet]:
    """Return triplets of which two in a row share their question, and each negative is the next one's positive."""
    asked = [Question(f"{i}", "el", next(texts), "article") for i in range((size + 1) // 2)]
    answers = [Candidate(f"{i}", "el", next(texts), "article") for i in range(size + 1)]
    return [Triplet(asked[i // 2], answers[i], answers[i + 1]) for i in range(size)]


def translated(texts: Iterator[str], size: int) -> list[Triplet]:
    """Return such triplets with translations; a question that two triplets share has translations in two languages."""
    plain = triplets(texts, size)
    said = [Question(t.question.id, "ar" if i % 2 else "hi", next(texts), "article") for i, t in enumerate(plain)]
    return [replace(triplet, translation=each) for triplet, each in zip(plain, said, strict=True)]


def pairs(texts: Iterator[str], size: int) -> list[ScoredPair]:
    """Return scored pairs of which two in a row share a text."""
    found = [next(texts) for _ in range(size + 1)]
    return [
        ScoredPair("el-el", ("el", "el"), found[i], found[i + 1], (i + 1) / (size + 1), f"{i}") for i in range(size)
    ]


def translations(texts: Iterator[str], size: int) -> list[Translation]:
    """Return translations of which two in a row share their source."""
    sources = [next(texts) for _ in range((size + 1) // 2)]
    return [Translation(sources[i // 2], next(texts), ("en", "de")) for i in range(size)]


def entailments(texts: Iterator[str], size: int) -> list[EntailmentPair]:
    """Return entailment pairs of all labels, of which two in a row share a text."""
    found, labels = [next(texts) for _ in range(size + 1)], ("entailment", "neutral", "contradiction")
    return [EntailmentPair(found[i], found[i + 1], labels[i % 3]) for i in range(size)]


KINDS = {f.__name__: f for f in (triplets, translated, pairs, translations, entailments)}


def episode_of(texts: Sequence[Iterator[str]], kind: str, sizes: Sequence[int]) -> Episode:
    """Return an episode of sets of these sizes, from the texts of each."""
    variant = Arrangement.parse("el_el -> el_el").variants[0]
    sets = [LabelledSet(variant, tuple(KINDS[kind](own, size))) for own, size in zip(texts, sizes, strict=True)]
    return Episode(Arrangement((variant,) * len(sizes)), tuple(sets))


def episode(name: str, kind: str = "triplets", sizes: Sequence[int] = (4, 3)) -> Episode:
    """Make an episode of `len(sizes)` sets of these sizes; other names give other texts."""
    return episode_of([map(f"{name} {i} text {{}}".format, count()) for i in range(len(sizes))], kind, sizes)


def translation_episode(*pairs: tuple[str, str]) -> Episode:
    """Make an episode of one set of translations, from English to German."""
    found = Arrangement.parse("en_de -> en_de").variants[0]
    examples = tuple(Translation(source, target, ("en", "de")) for source, target in pairs)
    return Episode(Arrangement((found,)), (LabelledSet(found, examples),))
