"""One stage in its own folder: data, targets, learner, dev score, and the training loop."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.algorithms.base import Learner, TargetSpec
from metasearch.algorithms.losses.base import warn_of_unused
from metasearch.config import registry, yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Stage
from metasearch.config.measure import Measure
from metasearch.config.roles import MaxLength
from metasearch.data.entailment import read_entailment
from metasearch.data.parallel.corpus import Corpus, read_corpus
from metasearch.data.parallel.saved import TokenCounter
from metasearch.data.records import ScoredPair, SimilarityData, Translation
from metasearch.data.scored import read_scored, split_dev
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.episodes.batches import Batches
from metasearch.errors import ConfigError, DataError, quoted
from metasearch.evaluation.evaluate import correlate
from metasearch.evaluation.metrics.pairs import accuracy, text_numbers
from metasearch.io import atomic_write
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.target_cache import LiveTokens, TargetCache, require_comparable
from metasearch.pipelines.factory import make_gradients, resolved_loss
from metasearch.runs.callbacks import Callback, CallbackGroup, RunLog
from metasearch.runs.folder import RunFolder
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.distributed import SINGLE_PROCESS, ProcessGroup
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Outcome, Trainer, log_memory

Vectors = NDArray[np.float32]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A stage's training and held-out pairs; `groups` is the share of an epoch that each training pair belongs to."""

    train: Sequence[Any]
    dev: Sequence[Any]
    groups: NDArray[np.int16] | None
    fingerprint: str
    described: str
    report: str = ""


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


def pair_lengths(pairs: Sequence[Any], encoder: Encoder) -> NDArray[np.int64]:
    """Return the token count of each pair's longer text `(N,)`."""
    if isinstance(pairs, Corpus):
        return pairs.lengths(token_counter(encoder))
    first, second = ([pair.texts[side] for pair in pairs] for side in (0, 1))
    return np.maximum(encoder.lengths(first, "text"), encoder.lengths(second, "text"))


def token_counter(encoder: Encoder) -> TokenCounter:
    """Return an encoder's token counter, up to its limit."""
    about = [tokenizer_fingerprint(encoder.model), encoder.prompt("text"), encoder.limit("text")]
    return TokenCounter(lambda texts: encoder.lengths(texts, "text"), json.dumps(about))


def training_batches(config: DistillConfig, name: str, source: Source, encoder: Encoder) -> tuple[Batches, int]:
    """Return a stage's training batches, with pairs of similar length together, and their maximum number."""
    budget = config.recipe.stages[name].budget
    lengths = pair_lengths(source.train, encoder)
    batches = Batches(source.train, lengths, budget.batch, config.seed, source.groups, name)
    limits = (budget.epochs * batches.steps_per_epoch, budget.steps, config.max_steps)
    return batches, min(limit for limit in limits if limit)


def build_stage_learner(stage: Stage, where: str) -> tuple[type[Learner], Any, TargetSpec | None]:
    """Return the class of a stage's learner, its checked options and the targets it wants; loads no weights."""
    learner: type[Learner] = registry.load("learners", stage.learner).LEARNER
    # The batches of a stage are episodes of a single set: chains of one link.
    if 1 not in learner.links:
        raise ConfigError(f"{where}: learner '{stage.learner}' learns from episodes; use `metasearch train`")
    if stage.data not in learner.data:
        raise ConfigError(
            f"{where}: learner '{stage.learner}' learns from {' or '.join(learner.data)} data, not {stage.data}"
        )
    options = yaml.check(stage.options, learner.Options, f"{where}: options")
    # For its errors alone.
    resolved_loss(stage.loss, f"{where}: loss")
    wanted = learner.wanted(options)
    if wanted and stage.against is None:
        raise ConfigError(f"{where}: learner '{stage.learner}' needs a frozen role to learn from, under `against`")
    if not wanted and stage.against is not None:
        raise ConfigError(f"{where}: learner '{stage.learner}' takes no targets; omit `against`")
    if wanted and wanted.output == "states" and stage.monitor == "cosine":
        raise ConfigError(f"{where}: monitor: cosine is between vectors of texts; options.output is {wanted.output}")
    return learner, options, wanted


@dataclass(frozen=True)
class StageEvaluator:
    """Scores a learner's current weights on a stage's held-out data alone; called by the trainer.

    `batches` has the held-out pairs, for the loss; `output` is the learner's, one vector for each text.
    """

    learner: Learner
    pairs: Sequence[Translation] | Sequence[ScoredPair]
    batches: Batches
    monitor: str
    output: Output

    def __call__(self) -> float:
        """Return the score, higher is better."""
        if self.monitor == "loss":
            return -self._loss()
        output: Output = "sentence" if self.monitor == "spearman" else self.output
        texts, encoder = [pair.texts for pair in self.pairs], self.learner.encoder
        source, target = (encoder.encode([text[side] for text in texts], "text", output) for side in (0, 1))
        if self.monitor == "spearman":
            data = SimilarityData(tuple(pair for pair in self.pairs if isinstance(pair, ScoredPair)))
            return correlate(data, source, target, [Measure("spearman")]).mean("spearman")
        pairs = [pair for pair in self.pairs if isinstance(pair, Translation)]
        if self.monitor == "cosine":
            return self._cosine(pairs, source, target)
        return _accuracy(pairs, source, target)

    def _loss(self) -> float:
        """Return the stage's mean loss on the held-out pairs, without dropout."""
        training = self.learner.encoder.embedder.training
        self.learner.train(False)
        total, count = 0.0, 0
        with torch.no_grad():
            for step in range(self.batches.steps_per_epoch):
                episodes = self.batches.batch(step, self.batches.size)
                # The mean is by pairs: the last batch may be smaller.
                size = len(episodes[0].sets[0].examples)
                total += size * self.learner.outer_loss(episodes).total.item()
                count += size
        self.learner.train(training)
        return total / count

    def _cosine(self, pairs: Sequence[Translation], source: Vectors, target: Vectors) -> float:
        """Return the mean cosine between source or target texts and their targets."""
        wanted, targets = type(self.learner).wanted(self.learner.options), self.learner.targets
        assert targets is not None
        assert wanted is not None
        of_source = targets.vectors([pair.source for pair in pairs])
        of_target = targets.vectors([pair.target for pair in pairs]) if wanted.translations else of_source
        # The mean of all products times the dimension is the mean over rows of their sums: the cosines.
        return float(np.mean([_unit(source) * _unit(of_source), _unit(target) * _unit(of_target)]) * source.shape[1])


def _accuracy(pairs: Sequence[Translation], source: Vectors, target: Vectors) -> float:
    """Return the mean accuracy of both directions; every language counts the same, however many pairs it has."""
    languages = np.array([pair.languages[1] for pair in pairs])
    sides = (source, text_numbers(pair.source for pair in pairs)), (target, text_numbers(p.target for p in pairs))
    each = []
    for code in sorted(set(languages)):
        (first, asked), (second, answers) = ([part[languages == code] for part in side] for side in sides)
        there, back = accuracy(first, second, asked, answers), accuracy(second, first, answers, asked)
        each.append((there.mean() + back.mean()) / 2)
    return float(np.mean(each))


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A vector of zeros stays one, and does not become NaN.
    unit: Vectors = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return unit


def run_stage(
    config: DistillConfig,
    name: str,
    roles: RoleEncoders,
    files: RunFolder,
    callback: Callback,
    processes: ProcessGroup = SINGLE_PROCESS,
) -> tuple[Outcome, str]:
    """Train a stage to its end, or resume it; return the outcome, and the stage's data in words.

    The encoder of the trained role changes in place, to the weights of the best dev score. The first of several
    processes writes.
    """
    stage = config.recipe.stages[name]
    encoder = roles.at(stage.trains, stage.max_length)
    source = read_source(config, name, encoder)
    batches, total = training_batches(config, name, source, encoder)
    if processes.first:
        _same_data(files.path, source)
    _log_data(name, stage, source)
    warn_of_unused(stage.loss)

    def seen() -> Iterator[Any]:
        """Yield the training pairs that the steps look at, then the dev pairs."""
        yield from (source.train[i] for i in batches.visited(total).tolist())
        yield from source.dev

    cache = Path(config.targets) if config.targets else files.path.parent / "targets"
    learner = processes.rank_zero_first(lambda: _learner(config, name, roles, seen, cache, callback))
    dev = Batches(
        source.dev, pair_lengths(source.dev, encoder), stage.budget.batch, seed=0, name=f"{name} dev"
    )  # one epoch holds every pair once
    output: Output = getattr(learner.options, "output", "sentence")
    trainer = Trainer(
        learner,
        make_gradients(encoder, config.compute.checkpointing),
        Schedule((Phase(name, batches, total),), total, stage.budget.batch),
        stage.outer,
        stage.budget,
        dev=StageEvaluator(
            learner,
            source.dev,
            dev,
            stage.monitor,
            "pooled" if output == "states" else output,  # the mean over the tokens of a text
        ),
        callback=CallbackGroup(RunLog(files), callback) if processes.first else callback,
        store=CheckpointStore(files.path) if processes.first else None,
        seed=config.seed,
        precision=config.compute.precision,
        dropout=stage.dropout,
        processes=processes,
    )
    log_memory(trainer)
    return trainer.fit(resume=True), source.described


def _log_data(name: str, stage: Stage, source: Source) -> None:
    """Log a stage's data, and warn if most of it is held out."""
    for line in filter(None, (source.described, source.report)):
        log.info("stage %s: %s", name, line)
    if len(source.dev) > len(source.train):
        log.warning(
            "stage %s: %d pairs are held out for the dev score, more than the %d that are trained on; lower "
            "stages.%s.corpus.dev, which is %d", name, len(source.dev), len(source.train), name, stage.corpus.dev,
        )  # fmt: skip


def _learner(
    config: DistillConfig,
    name: str,
    roles: RoleEncoders,
    pairs: Callable[[], Iterator[Any]],
    cache: Path,
    callback: Callback,
) -> Learner:
    """Return a stage's learner, with targets for its pairs if it learns from a frozen role."""
    stage = config.recipe.stages[name]
    kind, options, wanted = build_stage_learner(stage, f"stage '{name}'")
    trained = roles.at(stage.trains, stage.max_length)
    if not (wanted and stage.against):
        return kind(trained, stage.loss, options)
    frozen = roles.at(stage.against, stage.max_length)
    require_comparable(frozen, trained, wanted.output)
    if wanted.output == "states":
        return kind(
            trained, stage.loss, options, LiveTokens(frozen, wanted.output, config.compute.precision == "bfloat16")
        )
    sides = 2 if wanted.translations else 1
    targets = TargetCache(cache, frozen, wanted.output, config.target_type)
    targets.add(
        lambda: (text for pair in pairs() for text in pair.texts[:sides]),
        lambda done, total: callback.on_encode(f"targets by {frozen.name}", done, total),
    )
    return kind(trained, stage.loss, options, targets)


def _same_data(folder: Path, source: Source) -> None:
    """Write the fingerprint of a stage's data, or raise `DataError` where it began with other data."""
    path = folder / "data.txt"
    before = path.read_text(encoding="utf-8").split()[:1] if path.is_file() else []
    if before not in ([], [source.fingerprint]):  # a crash may leave the file empty
        raise DataError(f"{folder}: the data has changed since the stage began. Restore it, or delete {quoted(folder)}")
    atomic_write(path, f"{source.fingerprint} {source.described}\n")
