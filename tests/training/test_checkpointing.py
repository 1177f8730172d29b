"""What is computed again on the way back gives the same gradient, for every learner and family.

Layers give the same bits. Texts, a few at a time, give the same numbers: products of other sizes round otherwise.
"""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.gradients import PLAIN, REPTILE, STEPPING, Case, encoder_of, error, outer
from metasearch.algorithms.sets import texts_of
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.layout import runs_of
from metasearch.training.packing.network import Checkpointed, Network

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
QUICK = [(STEPPING[0], True, "student")]
PLACES = [
    *QUICK,
    *[(STEPPING[1], False, "bert"), (PLAIN[2], True, "mpnet"), (STEPPING[0], False, "modernbert")],
    *[(STEPPING[1], True, "distilbert"), (REPTILE, True, "tiny")],
    *[(PLAIN[0], True, "xlm-roberta"), (PLAIN[5], True, "neutral")],
]
"""Every kind of learner, and every family with layers."""


def on(places):
    """Run a test on places, all but the quick one in the slow tier."""
    return pytest.mark.parametrize(
        ("case", "first_order", "family"),
        [
            pytest.param(*place, marks=() if place in QUICK else pytest.mark.slow, id="{}-{}-{}".format(*place))
            for place in places
        ],
    )


@pytest.fixture
def runs(monkeypatch):
    """Count how often a layer runs that is computed again."""
    found, forward = [], Checkpointed.forward

    def counted(self, *args, **kwargs):
        found.append(self)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(Checkpointed, "forward", counted)
    return found


def both(encoder, **given):
    """Return what recomputes layers, and what keeps all."""
    return (OuterGradients(encoder, checkpointing=checkpointing, **given) for checkpointing in ("layers", "off"))


def saved_size(compute, beside):
    """Return the bytes that autograd keeps while the result of a computation lives, without tensors `beside` it."""
    sizes = {}

    def note(tensor):
        # By address, as many saved tensors are views of one storage.
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # the tensor itself would hold on to its own graph

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        alive = compute()
    del alive
    for tensor in beside:
        sizes.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(sizes.values())


def assert_same_bits(found, plain):
    assert found.loss.item() == pytest.approx(plain.loss.item(), rel=1e-12)
    assert found.given.keys() == plain.given.keys()
    assert found.dense.keys() == plain.dense.keys()
    for name, gradient in plain.dense.items():
        # On a GPU some sums are taken in any order.
        assert gradient.is_cuda or torch.equal(found.dense[name], gradient), name
    assert error(found, plain) < 1e-10


@pytest.mark.parametrize("device", DEVICES)
@on(PLACES)
def test_the_gradient_has_the_same_bits(case, first_order, family, device, runs):
    """Two layers, two inner steps, two episodes on two threads; by graph in second order."""
    encoder = encoder_of(family, layers=2, device=device)
    learner, episodes = case.learn(encoder, inner_steps=2, first_order=first_order), case.episodes()
    again, kept = both(encoder, workers=2)
    expected = outer(learner, episodes, kept)
    assert not runs
    assert_same_bits(outer(learner, episodes, again), expected)
    # Output `embedding` is what the first layer is given.
    assert bool(runs) == (dict(case.options).get("output") != "embedding")


@pytest.mark.slow
@pytest.mark.parametrize(("case", "family"), [(STEPPING[0], "bert"), (PLAIN[2], "mpnet")], ids=str)
def test_in_bf16_the_gradient_is_that_of_bf16_up_to_its_rounding(case, family, runs):
    encoder = encoder_of(family, torch.float32, layers=2)
    learner, episodes = case.learn(encoder, inner_steps=2), case.episodes()
    again, kept = both(encoder)
    with torch.autocast("cpu", torch.bfloat16):
        # A product in bfloat16 is not always the same bits when it is taken again: eight bits are its precision.
        assert error(outer(learner, episodes, again), outer(learner, episodes, kept)) < 2**-8
    assert runs


@pytest.fixture
def few_tokens(monkeypatch):
    """Compute at most a dozen tokens at a time, as texts of these families have four to twelve."""
    monkeypatch.setattr("metasearch.training.packing.encoder.most_tokens", lambda device: 12)


@pytest.mark.parametrize("device", DEVICES)
@on(PLACES[::2])
def test_gradients_of_a_few_texts_at_a_time_are_those_of_the_reference(case, first_order, family, device, few_tokens):
    """Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3.2."""
    encoder = encoder_of(family, layers=2, device=device)
    learner, episodes = case.learn(encoder, inner_steps=2, first_order=first_order), case.episodes()
    packed = OuterGradients(encoder, workers=2, checkpointing="gradcache")
    found, plain = outer(learner, episodes, packed), outer(learner, episodes)
    assert found.loss.item() == pytest.approx(plain.loss.item(), rel=1e-12)
    assert error(found, plain) < 1e-10


def test_of_many_texts_their_vectors_alone_are_kept(few_tokens):
    encoder = encoder_of("bert")
    (x, *_), *_ = [episode.sets for episode in Case("maml").episodes()]

    def kept(checkpointing):
        packed = PackedEncoder(encoder)
        packed.checkpoint(checkpointing)
        batch = packed.lay_out([texts_of(x)])
        weights = [weight.detach().requires_grad_() for weight in batch.cut(packed.weights)]
        (texts,) = batch.texts
        (vectors,) = packed.each([texts], lambda network, texts: network.run(weights, texts))
        size = saved_size(lambda: Network(encoder, packed.plan, checkpointing).run(weights, texts), weights)
        return len(texts.parts), size - vectors.nbytes, texts.tokens

    (passes, few, tokens), (one, whole, _) = kept("gradcache"), kept("off")
    assert one == 1
    assert passes > 4
    # Beside vectors: features of the texts, three numbers of eight bytes a token, and where each text begins.
    assert few < 8 * 8 * tokens < whole


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30).map(sorted), st.integers(1, 40))
def test_runs_hold_all_texts_in_their_order_and_no_more_than_is_allowed(lengths, most):
    order = list(range(len(lengths)))
    runs = runs_of(order, lengths, most)
    assert [i for run in runs for i in run] == order
    assert all(len(run) == 1 or sum(lengths[i] for i in run) <= most for run in runs)
    # As few as that allows: the first text of a run did not fit into the one before.
    assert all(sum(lengths[i] for i in (*one, two[0])) > most for one, two in pairwise(runs))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "family"), [(STEPPING[0], "bert"), (PLAIN[2], "mpnet")], ids=str)
def test_dropout_draws_the_same_numbers(case, family, runs):
    encoder = encoder_of(family, layers=2)
    learner, episodes = case.learn(encoder, inner_steps=2), case.episodes()
    learner.train(True)
    try:
        again, kept = both(encoder)
        found = []
        for gradients in (again, kept, kept):
            torch.manual_seed(len(found) // 2)  # another one for the last
            found.append(outer(learner, episodes, gradients))
        assert_same_bits(*found[:2])
        assert error(found[2], found[1]) > 1e-3
    finally:
        learner.train(False)
    assert runs
