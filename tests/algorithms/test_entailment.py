"""The classification objective against its formula, softmax(W (u, v, |u − v|)), and the learner that minimises it."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

from helpers.padded import PaddedGradients
from metasearch.algorithms.entailment import Entailment
from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Budget, Loss, Outer
from metasearch.data.entailment import LABELS, EntailmentPair
from metasearch.encoders.builtin import tiny
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.runs.callbacks import Callback
from metasearch.training.schedule import schedule
from metasearch.training.trainer import Trainer

PAIRS = (
    EntailmentPair("A man rides a horse.", "Somebody rides.", "entailment"),
    EntailmentPair("A man rides a horse.", "Nobody rides.", "contradiction"),
    EntailmentPair("A man rides a horse.", "He is a jockey.", "neutral"),
    EntailmentPair("Two dogs run.", "Animals run.", "entailment"),
    EntailmentPair("Two dogs run.", "The dogs sleep.", "contradiction"),
)
OTHER = (EntailmentPair("It snows.", "It is cold.", "neutral"), EntailmentPair("It snows.", "It snows.", "entailment"))


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


def test_loss_is_that_of_sentence_transformers_without_its_bias():
    made = learner(output="sentence")
    theirs = SoftmaxLoss(made.encoder.model, sentence_embedding_dimension=128, num_labels=3)
    with torch.no_grad():
        theirs.classifier.weight.copy_(made.head)
        theirs.classifier.bias.zero_()
    sides = [[pair.premise for pair in PAIRS], [pair.hypothesis for pair in PAIRS]]
    labels = torch.tensor([LABELS.index(pair.label) for pair in PAIRS])

    expected = theirs([made.encoder.features(texts, "text") for texts in sides], labels)

    assert made.outer_loss([episode(*PAIRS)]).total.item() == pytest.approx(expected.item(), rel=1e-5)


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


class Same:
    """Gives the same episodes at every step."""

    def batch(self, step, size):
        return [episode(*PAIRS), episode(*OTHER)]


def trained(steps):
    made = learner()
    budget = Budget(meta_batch=1, meta_train=6, meta_valid=0, epochs=1, eval_every=3, patience=0)
    trainer = Trainer(
        made,
        PaddedGradients(),
        schedule(budget, [("train", steps, Same())], None),
        Outer(lr=1e-3),
        budget,
        dev=lambda: -made.outer_loss(Same().batch(0, 1)).total.item(),
        callback=Callback(),
    )
    trainer.fit()
    return made


def test_training_learns_the_labels_and_the_encoder_is_saved_without_the_head(tmp_path):
    made = trained(6)
    fresh = learner()
    before, after = (m.outer_loss(Same().batch(0, 1)).total.item() for m in (fresh, made))
    assert after < before
    assert not torch.equal(made.head, fresh.head)
    made.encoder.save(tmp_path / "model")
    assert not any("head" in name for name in made.encoder.model.state_dict())
