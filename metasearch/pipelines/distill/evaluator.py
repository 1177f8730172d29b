"""The dev score of a stage. Only held-out data is looked at, never a test set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.algorithms.base import Learner
from metasearch.config.distillation import Monitor
from metasearch.config.measure import Measure
from metasearch.data.records import ScoredPair, SimilarityData, Translation
from metasearch.encoders.encoder import Output
from metasearch.episodes.batches import Batches
from metasearch.evaluation.evaluate import correlate
from metasearch.evaluation.metrics.pairs import accuracy, text_numbers

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class StageEvaluator:
    """Scores a learner's current weights on a stage's held-out data; called by the trainer.

    `batches` has the held-out pairs, for the loss; `output` is the learner's, one vector for each text.
    """

    learner: Learner
    pairs: Sequence[Translation] | Sequence[ScoredPair]
    batches: Batches
    monitor: Monitor
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
