"""The classification objective against its formula, softmax(W (u, v, |u − v|)), and the learner that minimises it."""

import numpy as np
import pytest
import torch

from metasearch.algorithms.entailment import Entailment
from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Loss
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.encoders.builtin import tiny
from metasearch.episodes.episode import Episode, LabelledSet

PAIRS = (
    EntailmentPair("A man rides a horse.", "Somebody rides.", "entailment"),
    EntailmentPair("A man rides a horse.", "Nobody rides.", "contradiction"),
    EntailmentPair("A man rides a horse.", "He is a jockey.", "neutral"),
    EntailmentPair("Two dogs run.", "Animals run.", "entailment"),
    EntailmentPair("Two dogs run.", "The dogs sleep.", "contradiction"),
)


def episode(*examples):
    variant = Variant("en", ("en",))
    return Episode(Arrangement((variant,)), (LabelledSet(variant, examples),))


def learner(double=False, **options):
    encoder = tiny.build()
    if double:
        encoder.embedder.double()
    return Entailment(encoder, Loss(), Entailment.Options(**options))


def by_hand(vectors, head, pairs):
    """Return the loss, its gradient in W, and the logits, in numpy: o = W f, L = −mean log softmax(o)[y]."""
    row = {
        text: vectors[i] for i, text in enumerate(dict.fromkeys(t for p in pairs for t in (p.premise, p.hypothesis)))
    }
    f = np.stack(
        [np.concatenate([row[p.premise], row[p.hypothesis], abs(row[p.premise] - row[p.hypothesis])]) for p in pairs]
    )
    logits = f @ head.T
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wanted = np.eye(3)[[LABELS.index(p.label) for p in pairs]]
    loss = -np.log((probabilities * wanted).sum(axis=1)).mean()
    return loss, (probabilities - wanted).T @ f / len(pairs), logits


@pytest.mark.parametrize("output", ["pooled", "sentence"])
def test_outer_loss_and_its_gradients_are_those_of_the_formula(output):
    made = learner(double=True, output=output)
    texts = list(dict.fromkeys(t for p in PAIRS for t in (p.premise, p.hypothesis)))
    vectors = made.encoder.embedder(made.encoder.features(texts, "text"), output)
    expected, slope, logits = by_hand(vectors.detach().numpy(), made.head.detach().numpy(), PAIRS)

    found = made.outer_loss([episode(*PAIRS)])
    found.total.backward()

    assert found.total.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(made.head.grad.numpy(), slope, rtol=1e-9, atol=1e-14)
    right = sum(LABELS[row.argmax()] == pair.label for row, pair in zip(logits, PAIRS, strict=True))
    assert found.terms == {"task": pytest.approx(expected), "accuracy": pytest.approx(right / len(PAIRS))}
    # And in a weight of the encoder, by a central difference.
    weight = next(p for n, p in made.named_parameters() if n.endswith("output.dense.weight"))
    errors = []
    with torch.no_grad():
        for step in (1e-5, -2e-5):
            weight[3, 4] += step
            errors.append(made.outer_loss([episode(*PAIRS)]).total.item())
    assert weight.grad[3, 4].item() == pytest.approx((errors[0] - errors[1]) / 2e-5, rel=1e-5)


def test_the_head_is_one_parameter_beside_the_encoders_made_from_the_seed():
    made = learner(seed=3)
    names = [name for name, _ in made.named_parameters()]
    assert names[-1] == "head.weight"
    assert names[:-1] == [name for name, _ in made.encoder.embedder.named_parameters()]
    assert (made.head.shape, made.head.dtype) == ((3, 3 * 128), torch.float32)
    assert made.head.abs().max() <= (3 * 128) ** -0.5
    assert torch.equal(made.head, learner(seed=3).head)
    assert not torch.equal(made.head, learner(seed=4).head)
