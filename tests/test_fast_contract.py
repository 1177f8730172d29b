"""One contract of two engines: every learner has the same outer gradient on both, on every family of encoders.

In float64 to 1e-10, of all parameters together and of each; in float32 to 1e-5, of all together.
"""

import pytest
import torch

from _engines import AWKWARD, FAMILIES, QUERY, SUPPORT, Case, encoder_of, error, errors, on_both, outer
from metasearch import registry
from metasearch.fast import Fast

EXACT = {torch.float64: 1e-10, torch.float32: 1e-5}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

THREE = (SUPPORT, QUERY, QUERY)
STEPPING = [
    Case("maml"),
    Case("meta-sgd"),
    Case("maml-align", sizes=THREE),
    Case("maml-align", sizes=THREE, options=(("shared", False),)),
]
REPTILE = Case("reptile")
PLAIN = [
    Case("fine-tune"),
    Case("fine-tune", "scored", (SUPPORT,)),
    Case("distill", "translations", (4,), (("output", "pooled"), ("contrast", "soft"))),
    Case("distill", "translations", (4,), (("output", "sentence"), ("target", "own"))),
    Case("distill", "translations", (4,), (("output", "embedding"),)),
    Case("distill", "translations", (4,), (("output", "tokens"), ("target", "own"))),
    Case("ema", "translations", (4,), (("output", "pooled"),)),
    Case("ema", "translations", (4,), (("output", "sentence"),)),
    Case("entailment", "entailments", (4,), (("output", "pooled"),)),
    Case("entailment", "entailments", (4,), (("output", "sentence"),)),
]

STEPS = pytest.mark.parametrize(
    ("steps", "dtype"),
    [(1, torch.float64), (3, torch.float64), (5, torch.float32)],
    ids=["n=1, float64", "n=3, float64", "n=5, float32"],
)
ON_EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES)
ON_EVERY_DEVICE = pytest.mark.parametrize("device", DEVICES)


def assert_same(fast, plain, dtype):
    """Assert that losses, terms and gradients agree, and that the same parameters have one."""
    exact = EXACT[dtype]
    assert fast.loss.item() == pytest.approx(plain.loss.item(), rel=exact)
    assert fast.terms == pytest.approx(plain.terms, rel=exact, abs=exact)
    assert not fast.loss.requires_grad
    assert error(fast, plain) < exact
    if dtype == torch.float64:
        assert max(errors(fast, plain).values()) < exact


@ON_EVERY_DEVICE
@ON_EVERY_FAMILY
@STEPS
@pytest.mark.parametrize("case", [*STEPPING, REPTILE], ids=str)
def test_first_order(case, steps, dtype, family, device):
    learner = case.learn(encoder_of(family, dtype, device=device), inner_steps=steps)
    plain, fast = on_both(learner, case.episodes(2 if steps == 1 else 1))
    assert_same(fast, plain, dtype)


@ON_EVERY_DEVICE
@ON_EVERY_FAMILY
@STEPS
@pytest.mark.parametrize("case", STEPPING[:3], ids=str)  # a teacher of its own is in `test_maml_align_oracle`
def test_second_order_by_graph_and_by_recompute(case, steps, dtype, family, device):
    learner = case.learn(encoder_of(family, dtype, device=device), inner_steps=steps, first_order=False)
    episodes = case.episodes(1)
    plain, graph = on_both(learner, episodes, second_order="graph")
    assert_same(graph, plain, dtype)
    if steps < 5:  # five by recomputing are below
        assert_same(outer(learner.use(Fast(learner.encoder, "recompute")), episodes), plain, dtype)


@ON_EVERY_FAMILY
def test_five_steps_by_recompute(family):
    learner = STEPPING[0].learn(encoder_of(family), inner_steps=5, first_order=False)
    plain, fast = on_both(learner, STEPPING[0].episodes(1), second_order="recompute")
    assert_same(fast, plain, torch.float64)


@pytest.mark.parametrize("case", STEPPING, ids=str)
def test_on_several_workers(case):
    """Four episodes on two threads, in second order."""
    learner = case.learn(encoder_of("bert"), inner_steps=1, first_order=False)
    plain, fast = on_both(learner, case.episodes(4), workers=2)
    assert_same(fast, plain, torch.float64)


@ON_EVERY_DEVICE
@ON_EVERY_FAMILY
@pytest.mark.parametrize("dtype", EXACT, ids=str)
@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_without_inner_steps(case, dtype, family, device):
    learner = case.learn(encoder_of(family, dtype, device=device))
    plain, fast = on_both(learner, case.episodes())
    assert_same(fast, plain, dtype)


@ON_EVERY_FAMILY
def test_another_number_of_steps_or_another_order_is_another_gradient(family):
    """So the contract tells them apart."""
    case = STEPPING[0]

    def gradient(steps, first_order):
        learner = case.learn(encoder_of(family), inner_steps=steps, first_order=first_order)
        return outer(learner.use(Fast(learner.encoder)), case.episodes(1))

    first = gradient(1, True)
    assert error(gradient(3, True), first) > 1e-2
    assert error(gradient(1, False), first) > 1e-2


def test_every_learner_is_here():
    assert {case.learner for case in (*STEPPING, REPTILE, *PLAIN)} == set(registry.names("learners"))


@pytest.mark.parametrize("case", [STEPPING[0], STEPPING[2]], ids=str)
def test_every_awkward_text_is_in_an_episode_and_some_stand_there_twice(case):
    (episode,) = case.episodes(1)
    sides = [(t.question.text, t.positive.text, t.negative.text) for found in episode.sets for t in found.examples]
    texts = [text for side in sides for text in side]
    assert set(AWKWARD) < set(texts)
    assert len(set(texts)) < len(texts)
    lengths = encoder_of("bert").lengths(texts, "candidate")
    assert max(lengths) == encoder_of("bert").limit("candidate")
    assert min(lengths) < 10
