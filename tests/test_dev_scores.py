"""The dev score of a stage, by hand, and that it leaves learner and weights as they were."""

import logging
from collections import Counter

import numpy as np
import pytest
import torch

from metasearch.config import Loss, MaxLength
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.data.records import ScoredPair
from metasearch.data.translation import Translation
from metasearch.distillation.dev import Dev
from metasearch.distillation.sources import texts_of
from metasearch.encoders import tiny
from metasearch.episodes.batches import Batches
from metasearch.errors import DataError
from metasearch.learners.distill import Distill
from metasearch.learners.ema import EMA
from metasearch.learners.entailment import Entailment
from metasearch.learners.fine_tune import FineTune

# An untrained encoder finds a translation that shares words with its source, and misses most of the others.
GERMAN = [
    ("the house is old", "the house is alt"),
    ("a dog runs", "ein Hund läuft"),
    ("where is the key", "wo ist der Schlüssel"),
    ("two cats sleep under the table", "zwei Katzen schlafen unter dem Tisch"),
    ("taxi", "taxi"),
]
GREEK = [("a dog runs", "ένας σκύλος τρέχει"), ("yes", "ναι"), ("radio one", "radio ένα")]
PAIRS = [
    *(Translation(s, t, ("en", "de")) for s, t in GERMAN),
    *(Translation(s, t, ("en", "el")) for s, t in GREEK),
]
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


class Given:
    """Targets that are another encoder's vectors; remembers which texts it was asked for."""

    def __init__(self, output):
        self.encoder, self.output, self.asked = tiny.build(MaxLength(text=12), seed=1), output, set()

    def vectors(self, texts):
        self.asked.update(texts)
        return self.encoder.encode(texts, "text", self.output)


@pytest.fixture
def encoder():
    return tiny.build(MaxLength(text=12))


def dev(learner, pairs, monitor, output="pooled", size=3, heard=None):
    batches = Batches(pairs, [1] * len(pairs), size, seed=0, name="dev")
    return Dev(learner, pairs, batches, monitor, output, [].append if heard is None else heard.append)


def distilled(encoder, output="pooled", **options):
    return Distill(encoder, Loss(), Distill.Options(output=output, **options), Given(output))


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


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


def test_a_translation_is_looked_for_among_those_of_its_language_alone(encoder):
    """The same texts as another language would take the place of half of them."""
    twice = [*PAIRS[:5], *(Translation(p.source, p.target, ("en", "nl")) for p in PAIRS[:5])]
    learner = distilled(encoder)
    assert dev(learner, twice, "accuracy")() == dev(learner, PAIRS[:5], "accuracy")()


@pytest.mark.parametrize("target", ["source", "own"])
@pytest.mark.parametrize("output", ["pooled", "sentence", "embedding"])
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


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_the_loss_is_the_mean_over_the_pairs_however_they_are_batched_and_counts_downwards(encoder, size):
    """(1/N) Σ (‖S(s) − T(s)‖² + ‖S(t) − T(s)‖²)/D; the last batch of 8 pairs may hold fewer."""
    learner = distilled(encoder)
    source, target = (encoder.encode([texts_of(p)[side] for p in PAIRS], "text", "pooled") for side in (0, 1))
    wanted = learner.targets.vectors([p.source for p in PAIRS])
    errors = [
        sum((float(a) - float(w)) ** 2 + (float(b) - float(w)) ** 2 for a, b, w in zip(*rows, strict=True))
        for rows in zip(source, target, wanted, strict=True)
    ]
    expected = -sum(errors) / (len(PAIRS) * tiny.DIMENSIONS)
    assert dev(learner, PAIRS, "loss", size=size)() == pytest.approx(expected, rel=1e-5)


def test_a_loss_over_batches_counts_each_batch_by_its_size(encoder):
    learner = distilled(encoder, contrast="soft")
    measured = dev(learner, PAIRS, "loss", size=3)
    episodes = [measured.batches.batch(step) for step in range(3)]
    sizes = [len(batch[0].sets[0].examples) for batch in episodes]
    assert sorted(sizes) == [2, 3, 3]
    assert sorted(p.target for batch in episodes for p in batch[0].sets[0].examples) == sorted(p.target for p in PAIRS)
    with torch.no_grad():
        losses = [learner.outer_loss(batch).total.item() for batch in episodes]
    expected = sum(n * loss for n, loss in zip(sizes, losses, strict=True)) / 8
    assert measured() == pytest.approx(-expected, rel=1e-6)


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


def test_spearman_of_equal_scores_is_refused(encoder):
    same = [ScoredPair("en-en", ("en", "en"), f"text {i}", "text", 0.5, f"row {i}") for i in range(3)]
    with pytest.raises(DataError, match="constant"):
        dev(FineTune(encoder, Loss(), FineTune.Options()), same, "spearman", "sentence")()


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


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("monitor", "pairs", "made"), CASES)
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


def test_the_score_follows_the_weights(encoder):
    measured = dev(distilled(encoder), PAIRS, "cosine")
    before = measured()
    with torch.no_grad():
        encoder.model[0].auto_model.embeddings.word_embeddings.weight.neg_()
    assert abs(measured() - before) > 1e-3


@pytest.mark.parametrize("monitor", ["accuracy", "cosine", "loss"])
def test_the_log_hears_the_score_and_the_shape_of_the_translations_vectors(encoder, monitor):
    heard = []
    score = dev(distilled(encoder), PAIRS, monitor, heard=heard)()
    (event,) = heard
    vectors = encoder.encode([p.target for p in PAIRS], "text", "pooled").astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert event[monitor] == score
    assert event["spread"] == pytest.approx(np.sqrt(((unit - unit.mean(0)) ** 2).sum(1).mean()), rel=1e-4)
    assert {"spread", "rank"} < event.keys()
    assert len(event) == 4  # the score, and three numbers of the shape


def collapse(encoder):
    """Make every token nearly the same, in every place."""
    with torch.no_grad():
        block = encoder.model[0].auto_model.embeddings
        block.word_embeddings.weight.mul_(1e-3)
        block.position_embeddings.weight.mul_(0).add_(torch.linspace(-1, 1, tiny.DIMENSIONS))


def test_vectors_that_collapse_while_they_are_trained_are_reported(encoder, caplog):
    measured = dev(distilled(encoder), PAIRS, "accuracy")
    with caplog.at_level(logging.WARNING, logger="metasearch"):
        measured()
        assert not caplog.records
        collapse(encoder)
        measured()
    (record,) = caplog.records
    assert record.getMessage().startswith("collapse: all vectors are nearly the same")
    assert "It came with training" in record.getMessage()


def test_one_pair_is_enough_for_a_score(encoder):
    assert dev(distilled(encoder), PAIRS[:1], "accuracy")() == 1


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_collapse_is_told_once_at_the_start_and_once_later_however_long_it_lasts(encoder, caplog):
    collapse(encoder)
    measured = dev(distilled(encoder), PAIRS, "accuracy")
    with caplog.at_level(logging.WARNING, logger="metasearch"):
        for _ in range(4):
            measured()
    first, later = warnings(caplog)
    assert "Nothing is trained yet" in first
    assert "It was so at step 0" in later


def test_a_stage_that_goes_on_knows_the_shape_of_step_0_from_its_log(encoder, caplog):
    heard = []
    learner = distilled(encoder)
    dev(learner, PAIRS, "accuracy", heard=heard)()
    known = Dev.noted([{"step": 0, "dev": 0.5}, *heard, {"alike": 1.0, "spread": 0.0, "rank": 1.0}])
    collapse(encoder)
    measured = Dev(learner, PAIRS, Batches(PAIRS, [1] * 8, 3, 0), "accuracy", "pooled", heard.append, known)
    with caplog.at_level(logging.WARNING, logger="metasearch"):
        measured()
    (warning,) = warnings(caplog)
    assert "It came with training" in warning
    assert f"at step 0 mean cosine {heard[0]['alike']:.2f}, spread {heard[0]['spread']:.2f}" in warning


def test_a_log_without_a_shape_of_the_vectors_tells_none():
    assert Dev.noted([]) is None
    assert Dev.noted([{"step": 1, "loss": 0.5}]) is None


@pytest.mark.parametrize(
    ("monitor", "pairs", "made"),
    [
        ("cosine", PAIRS, distilled),
        ("accuracy", PAIRS, distilled),
        ("loss", PAIRS, distilled),
        ("spearman", SCORED, lambda encoder: FineTune(encoder, Loss(), FineTune.Options())),
    ],
)
def test_the_score_and_the_collapse_monitor_encode_each_side_once(encoder, monkeypatch, monitor, pairs, made):
    encoded, encode = Counter(), encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts, *more: encoded.update(set(texts)) or encode(texts, *more))
    dev(made(encoder), pairs, monitor, "sentence" if monitor == "spearman" else "pooled")()
    sides = 1 if monitor == "loss" else 2
    assert encoded == Counter(text for side in range(sides) for text in {texts_of(pair)[1 - side] for pair in pairs})
