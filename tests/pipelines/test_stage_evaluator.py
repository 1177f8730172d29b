"""The dev score of a stage, by hand, and what it leaves as it was."""

import copy
from functools import cache

import numpy as np
import pytest
import torch

from metasearch.algorithms.distill import Distill
from metasearch.algorithms.ema import EMA
from metasearch.algorithms.entailment import Entailment
from metasearch.algorithms.fine_tune import FineTune
from metasearch.config.recipe import Loss
from metasearch.config.roles import MaxLength
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.data.records import ScoredPair, Translation
from metasearch.encoders.builtin import tiny
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.stage import StageEvaluator

# An untrained encoder finds a translation that shares words with its source, and misses most of the others.
GERMAN = [
    ("the house is old", "the house is alt"),
    ("a dog runs", "ein Hund läuft"),
    ("where is the key", "wo ist der Schlüssel"),
    ("two cats sleep under the table", "zwei Katzen schlafen unter dem Tisch"),
    ("taxi", "taxi"),
]
GREEK = [("a dog runs", "ένας σκύλος τρέχει"), ("yes", "ναι"), ("radio one", "radio ένα")]
PAIRS = [*(Translation(s, t, ("en", "de")) for s, t in GERMAN), *(Translation(s, t, ("en", "el")) for s, t in GREEK)]
SCORED = [
    *(
        ScoredPair("en-en", ("en", "en"), a, b, score, f"row {i}")
        for i, (a, b, score) in enumerate(
            [("a dog", "a dog runs", 0.9), ("a cat", "the key", 0.1), ("yes", "no", 0.3), ("one two", "two one", 0.7)]
        )
    ),
    *(
        ScoredPair("de-en", ("de", "en"), a, b, score, f"row {i}")
        for i, (a, b, score) in enumerate([("ein Hund", "a dog", 0.8), ("ja", "the key", 0.2), ("taxi", "taxi", 1.0)])
    ),
]
KINDS = {"en-en": SCORED[:4], "de-en": SCORED[4:]}


@cache
def untrained(seed=0):
    """Return the built-in encoder, which nothing may change."""
    return tiny.build(MaxLength(text=12), seed=seed)


class Given:
    """Targets that are another encoder's vectors; remembers which texts it was asked for."""

    def __init__(self, output):
        self.encoder, self.output, self.asked = untrained(1), output, set()

    def vectors(self, texts):
        self.asked.update(texts)
        return self.encoder.encode(texts, "text", self.output)


def dev(learner, pairs, monitor, output="pooled", size=3):
    batches = Batches(pairs, [1] * len(pairs), size, seed=0, name="dev")
    return StageEvaluator(learner, pairs, batches, monitor, output)


def distilled(encoder, output="pooled", **options):
    return Distill(encoder, Loss(), Distill.Options(output=output, **options), Given(output))


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.fixture
def encoder():
    """An encoder that may be changed."""
    return copy.deepcopy(untrained())


def found_first(queries, candidates):
    """Return the share of queries to which the candidate of the same number is the most alike."""
    right = [
        max(range(len(candidates)), key=lambda j: cosine(query, candidates[j])) == i for i, query in enumerate(queries)
    ]
    return sum(right) / len(right)


@pytest.mark.parametrize("output", ["pooled", "sentence", "embedding"])
def test_accuracy_is_that_of_both_directions_in_each_language_and_languages_count_the_same(encoder, output):
    expected = []
    for pairs in (GERMAN, GREEK):
        source, target = (encoder.encode([pair[side] for pair in pairs], "text", output) for side in (0, 1))
        expected.append((found_first(source, target) + found_first(target, source)) / 2)
    score = dev(distilled(encoder, output), PAIRS, "accuracy", output)()
    assert score == pytest.approx(sum(expected) / 2)
    assert 0 < score < 1
    assert expected[0] != expected[1]


@pytest.mark.parametrize(
    ("output", "target"), [("pooled", "source"), ("sentence", "own"), ("embedding", "source"), ("pooled", "own")]
)
def test_cosine_is_the_mean_over_both_sides_of_that_to_their_targets(encoder, output, target):
    learner = distilled(encoder, output, target=target)

    def to_target(text, of):
        return cosine(encoder.encode([text], "text", output)[0], learner.targets.vectors([of])[0])

    sides = [
        (to_target(p.source, p.source), to_target(p.target, p.source if target == "source" else p.target))
        for p in PAIRS
    ]
    expected = sum(map(sum, sides)) / (2 * len(PAIRS))
    learner.targets.asked.clear()
    assert dev(learner, PAIRS, "cosine", output)() == pytest.approx(expected, abs=1e-6)
    assert learner.targets.asked == {p.source for p in PAIRS} | {p.target for p in PAIRS if target == "own"}


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_loss_is_the_mean_over_the_pairs_however_they_are_batched_and_counts_downwards(encoder, size):
    """(1/N) Σ (‖S(s) − T(s)‖² + ‖S(t) − T(s)‖²)/D; the last batch of 8 pairs may hold fewer."""
    learner = distilled(encoder)
    source, target = (encoder.encode([p.texts[side] for p in PAIRS], "text", "pooled") for side in (0, 1))
    wanted = learner.targets.vectors([p.source for p in PAIRS])
    errors = [
        sum((float(a) - float(w)) ** 2 + (float(b) - float(w)) ** 2 for a, b, w in zip(*rows, strict=True))
        for rows in zip(source, target, wanted, strict=True)
    ]
    expected = -sum(errors) / (len(PAIRS) * tiny.DIMENSIONS)
    assert dev(learner, PAIRS, "loss", size=size)() == pytest.approx(expected, rel=1e-5)


def rank_correlation(predicted, gold):
    """1 − 6 Σ d²/(n (n² − 1)), where no two values are the same."""
    n = len(gold)
    ranks = [[sorted(values).index(value) for value in values] for values in (predicted, gold)]
    assert len(set(ranks[0])) == len(set(ranks[1])) == n
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n**2 - 1))


def test_spearman_is_the_mean_over_language_pairs_of_the_correlation_of_ranks(encoder):
    expected = []
    for pairs in KINDS.values():
        predicted = [cosine(*encoder.encode([pair.text1, pair.text2], "text")) for pair in pairs]
        expected.append(rank_correlation(predicted, [pair.score for pair in pairs]))
    learner = FineTune(encoder, Loss(), FineTune.Options())
    assert dev(learner, SCORED, "spearman", "sentence")() == pytest.approx(sum(expected) / 2)


def test_the_loss_of_scored_and_of_entailment_pairs_is_that_of_their_learners(encoder):
    tuned = FineTune(encoder, Loss(), FineTune.Options())
    errors = [(cosine(*encoder.encode([p.text1, p.text2], "text")) - p.score) ** 2 for p in SCORED]
    assert dev(tuned, SCORED, "loss", "sentence")() == pytest.approx(-sum(errors) / len(SCORED), rel=1e-5)
    labels = ["entailment", "neutral", "contradiction", "neutral"]
    pairs = [EntailmentPair(p.text1, p.text2, label) for p, label in zip(SCORED, labels, strict=False)]
    told = Entailment(encoder, Loss(), Entailment.Options())
    losses = []
    for pair in pairs:
        u, v = encoder.encode([pair.premise, pair.hypothesis], "text", "pooled").astype(np.float64)
        logits = told.head.detach().double().numpy() @ np.concatenate([u, v, np.abs(u - v)])
        losses.append(np.log(np.exp(logits).sum()) - logits[LABELS.index(pair.label)])
    assert dev(told, pairs, "loss", size=3)() == pytest.approx(-sum(losses) / len(losses), rel=1e-5)


CASES = [
    ("accuracy", PAIRS, distilled),
    ("cosine", PAIRS, distilled),
    ("loss", PAIRS, distilled),
    ("accuracy", PAIRS, lambda encoder: EMA(encoder, Loss(), EMA.Options())),
    ("loss", PAIRS, lambda encoder: EMA(encoder, Loss(), EMA.Options())),
    ("spearman", SCORED, lambda encoder: FineTune(encoder, Loss(), FineTune.Options())),
    ("loss", SCORED, lambda encoder: FineTune(encoder, Loss(), FineTune.Options())),
]


@pytest.mark.parametrize(
    ("monitor", "pairs", "made", "training"), [(*case, i % 2 == 0) for i, case in enumerate(CASES)]
)
def test_a_score_is_without_dropout_and_leaves_weights_mode_gradients_and_dropout_to_come(
    encoder, monitor, pairs, made, training
):
    learner = made(encoder)
    calm = dev(learner, pairs, monitor)()
    weights = {name: value.clone() for name, value in learner.encoder.embedder.state_dict().items()}
    learner.train(training)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert dev(learner, pairs, monitor)() == calm
    assert torch.equal(torch.get_rng_state(), before)
    assert encoder.embedder.training is training
    assert all(module.training is training for module in encoder.embedder.modules())
    assert all(torch.equal(value, weights[name]) for name, value in encoder.embedder.state_dict().items())
    assert all(parameter.grad is None for parameter in encoder.embedder.parameters())
