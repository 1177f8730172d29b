"""The dev score of a stage, and whether its vectors collapse. Only held-out data is looked at, never a test set."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.algorithms.base import Learner
from metasearch.config.distillation import Monitor
from metasearch.config.measure import Measure
from metasearch.data.records import ScoredPair, SimilarityData, Translation
from metasearch.encoders.encoder import Encoder, Output
from metasearch.episodes.batches import Batches
from metasearch.evaluation.collapse import EmbeddingHealth
from metasearch.evaluation.evaluate import correlate
from metasearch.evaluation.metrics.pairs import accuracy, text_numbers

log = logging.getLogger(__name__)
Vectors = NDArray[np.float32]

_LOOKED_AT = 1000
"""Texts of the dev part for the collapse monitor, at most."""


@dataclass
class StageEvaluator:
    """Scores a learner's current weights on a stage's held-out data; called by the trainer.

    `batches` has the held-out pairs, for the loss; `note` is called with all measurements. `before` are the statistics
    of the vectors at step 0, if a resumed stage knows them.
    """

    learner: Learner
    pairs: Sequence[Translation] | Sequence[ScoredPair]
    batches: Batches
    monitor: Monitor
    output: Output
    note: Callable[[dict[str, object]], None]
    before: EmbeddingHealth | None = None
    _warned: set[bool] = field(default_factory=set, init=False)
    """Whether a warning was logged at the start, and later: a collapse seldom passes by itself."""

    def __call__(self) -> float:
        """Return the score, higher is better."""
        encoder = self.learner.encoder
        score, vectors = self._score(encoder)
        measured: dict[str, object] = {self.monitor: score}
        # Spread over all pairs, and the same ones at every evaluation.
        looked_at = np.linspace(0, len(self.pairs) - 1, min(len(self.pairs), _LOOKED_AT)).astype(int)
        if vectors is None:
            texts = [self.pairs[i].texts[1] for i in looked_at]
            now = EmbeddingHealth.of(encoder.encode(texts, "text", self.output))
        else:
            now = EmbeddingHealth.of(vectors[looked_at])
        warning = now.diagnose(self.before, encoder.dimension(self.output))
        if warning and (self.before is None) not in self._warned:
            self._warned.add(self.before is None)
            log.warning(warning)
        self.before = self.before or now
        shape = asdict(now)
        # A monitor is called `cosine`, too, so the mean cosine among the vectors is noted as `alike`.
        self.note({"alike": shape.pop("cosine"), **shape, **measured})
        return score

    @staticmethod
    def noted(events: Sequence[Mapping[str, Any]]) -> EmbeddingHealth | None:
        """Return the embedding statistics at step 0 from the log, or None."""
        first = next((event for event in events if "alike" in event), None)
        return None if first is None else EmbeddingHealth(first["alike"], first["spread"], first["rank"])

    def _score(self, encoder: Encoder) -> tuple[float, Vectors | None]:
        """Return the score, and all pairs' second embeddings if the scored ones collapse."""
        if self.monitor == "loss":
            return -self._loss(), None
        # The length of a vector changes neither a cosine nor what the collapse monitor sees.
        output: Output = "sentence" if self.monitor == "spearman" else self.output
        texts = [pair.texts for pair in self.pairs]
        source, target = (encoder.encode([text[side] for text in texts], "text", output) for side in (0, 1))
        if self.monitor == "spearman":
            data = SimilarityData(tuple(pair for pair in self.pairs if isinstance(pair, ScoredPair)))
            seen = target if self.output in ("sentence", "pooled") else None
            return correlate(data, source, target, [Measure("spearman")]).mean("spearman"), seen
        pairs = [pair for pair in self.pairs if isinstance(pair, Translation)]
        if self.monitor == "cosine":
            return self._cosine(pairs, source, target), target
        languages = np.array([pair.languages[1] for pair in pairs])
        sides = (source, text_numbers(pair.source for pair in pairs)), (target, text_numbers(p.target for p in pairs))
        # Every language counts the same, however many pairs it has.
        each = []
        for code in sorted(set(languages)):
            (first, asked), (second, answers) = ([part[languages == code] for part in side] for side in sides)
            there, back = accuracy(first, second, asked, answers), accuracy(second, first, answers, asked)
            each.append((there.mean() + back.mean()) / 2)
        return float(np.mean(each)), target

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


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A vector of zeros stays one, and does not become NaN.
    unit: Vectors = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return unit
