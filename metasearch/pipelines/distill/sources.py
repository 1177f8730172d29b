"""A stage's data: translations, scored pairs or entailment pairs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Stage
from metasearch.config.recipe import MaxLength
from metasearch.data.entailment import read_entailment
from metasearch.data.parallel.corpus import Corpus, read_corpus
from metasearch.data.parallel.reading import TokenCounter
from metasearch.data.records import SimilarityData
from metasearch.data.scored import read_scored, split_dev
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.episodes.batches import Batches
from metasearch.errors import DataError


@dataclass(frozen=True)
class Source:
    """A stage's training and held-out pairs; `groups` is the share of an epoch that each training pair belongs to."""

    train: Sequence[Any]
    dev: Sequence[Any]
    groups: NDArray[np.int16] | None
    fingerprint: str
    described: str
    report: str = ""

    def batches(self, encoder: Encoder, size: int, seed: int, name: str) -> Batches:
        """Return an encoder's training batches, with pairs of similar length together."""
        return Batches(self.train, self.lengths(self.train, encoder), size, seed, self.groups, name)

    def dev_batches(self, encoder: Encoder, size: int, name: str) -> Batches:
        """Return the dev batches; one epoch holds every pair once."""
        return Batches(self.dev, self.lengths(self.dev, encoder), size, 0, name=f"{name} dev")

    def seen(self, batches: Any, steps: int) -> Iterator[Any]:
        """Yield the training pairs that so many steps look at, then the dev pairs."""
        yield from (self.train[i] for i in batches.visited(steps).tolist())
        yield from self.dev

    @staticmethod
    def lengths(pairs: Sequence[Any], encoder: Encoder) -> NDArray[np.int64]:
        """Return the token count of each pair's longer text."""
        if isinstance(pairs, Corpus):
            return pairs.lengths(token_counter(encoder))
        first, second = ([pair.texts[side] for pair in pairs] for side in (0, 1))
        return np.maximum(encoder.lengths(first, "text"), encoder.lengths(second, "text"))


def read_source(config: DistillConfig, name: str, encoder: Encoder) -> Source:
    """Return a stage's data; `DataError` if a file is missing, damaged or too small for the dev part."""
    stage = config.recipe.stages[name]
    files = [Path(path) for path in config.texts.of(stage)]
    read = {"parallel": _parallel, "scored": _scored, "entailment": _entailment}[stage.data]
    try:
        return read(files, stage, encoder, config.seed)
    except DataError as error:
        hint = f" (--set stages.{name}.corpus.dev=N)" if str(error).startswith("dev") else ""
        raise DataError(f"stage '{name}': {error}{hint}") from None


class StageData(NamedTuple):
    """A stage's data, its training batches, and their maximum number."""

    source: Source
    batches: Batches
    steps: int


def training_data(config: DistillConfig, name: str, encoder: Encoder) -> StageData:
    """Return a stage's data and training batches; raises as `read_source`."""
    budget = config.recipe.stages[name].budget
    source = read_source(config, name, encoder)
    batches = source.batches(encoder, budget.batch, config.seed, name)
    limits = (budget.epochs * batches.steps_per_epoch, budget.steps, config.max_steps)
    return StageData(source, batches, min(limit for limit in limits if limit))


def token_counter(encoder: Encoder) -> TokenCounter:
    """Return an encoder's token counter, up to its limit."""
    about = [tokenizer_fingerprint(encoder.model), encoder.prompt("text"), encoder.limit("text")]
    return TokenCounter(lambda texts: encoder.lengths(texts, "text"), json.dumps(about))


def _parallel(files: Sequence[Path], stage: Stage, encoder: Encoder, seed: int) -> Source:
    settings = stage.corpus
    # Counts one token more than is allowed, so that a truncated text shows as too long; a limit is at least 3.
    counting = Encoder(encoder.model, encoder.name, MaxLength(text=max(settings.max_tokens, 2) + 1))
    corpus = read_corpus(files, settings, token_counter(counting))
    train, dev = corpus.hold_out(settings.dev, seed)
    described = f"{train.describe()}, {len(dev)} for dev"
    groups = train.groups(settings.balance)
    return Source(train, dev, groups, corpus.fingerprint, described, corpus.report.describe())


def _scored(files: Sequence[Path], stage: Stage, encoder: Encoder, seed: int) -> Source:
    pairs = read_scored(files)
    train, dev = split_dev(pairs, stage.corpus.dev, seed)
    languages = ", ".join(sorted({pair.pair for pair in pairs}))
    described = f"{len(train)} scored pairs of {languages}, {len(dev)} for dev"
    return Source(train, dev, None, SimilarityData(pairs).fingerprint, described)


def _entailment(files: Sequence[Path], stage: Stage, encoder: Encoder, seed: int) -> Source:
    data = read_entailment(files)
    train, dev = data.hold_out(stage.corpus.dev, seed)
    described = f"{len(train.pairs)} entailment pairs, {len(dev.pairs)} for dev"
    return Source(train.pairs, dev.pairs, None, data.fingerprint, described, data.report.describe())
