"""Outer gradients in shards: those of one shard but for rounding, in an order of sums that is a property of shards."""

import math

import pytest
import torch

from helpers.gradients import REFERENCE, Case, encoder_of, error, outer
from helpers.sharded import CASES
from metasearch.errors import ConfigError, OutOfMemory
from metasearch.fast import FastGradients
from metasearch.learners.base import Learner, OuterLoss, contiguous
from metasearch.learners.gradients import ReferenceGradients
from metasearch.learners.texts import joined
from metasearch.spec import registry
from metasearch.spec.recipe import Loss
from metasearch.training.adding import NOTHING, TreeSum, added, of_rows
from metasearch.training.processes import ALONE, Processes
from metasearch.training.shards import outer_gradient


def in_shards(learner, episodes, gradients, shards):
    """Return the outer gradient of so many shards."""

    def take(learner, episodes):
        return outer_gradient(gradients, learner, episodes, shards, Processes())

    return outer(learner, episodes, take)


def engines(learner):
    return {"reference": REFERENCE, "fast": FastGradients(learner.encoder, workers=2)}


def assert_same(found, expected):
    assert error(found, expected) < 1e-10
    assert found.loss.item() == pytest.approx(expected.loss.item(), rel=1e-10)
    assert found.terms == pytest.approx(expected.terms, rel=1e-10)
    assert not found.loss.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_shards_have_the_gradient_and_the_loss_of_the_whole_meta_batch(case, engine):
    """In float64 to 1e-10, against the formula as it is written; contrasts compare the texts of all shards."""
    learner = case.learn(encoder_of("bert"), inner_steps=2)
    episodes = case.episodes(4)
    expected = outer(learner, episodes)
    for shards in (2, 4):
        assert_same(in_shards(learner, episodes, engines(learner)[engine], shards), expected)


def test_every_learner_is_here():
    assert {case.learner for case in CASES} == set(registry.names("learners"))


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_the_mean_of_the_gradients_of_shards_is_not_that_of_maml_align(engine):
    """Its L_kd squares a sum over all episodes: so its gap is gathered first."""
    case = next(case for case in CASES if case.learner == "maml-align")
    learner, episodes = case.learn(encoder_of("bert"), inner_steps=1), case.episodes(2)
    whole = outer(learner, episodes)
    assert_same(in_shards(learner, episodes, engines(learner)[engine], 2), whole)
    alone = [outer(learner, [episode]).dense for episode in episodes]
    mean = {name: (alone[0][name] + alone[1][name]) / 2 for name in alone[0]}
    off = sum((mean[name] - value).square().sum() for name, value in whole.dense.items()).sqrt()
    assert off > 1e-5 * sum(value.square().sum() for value in whole.dense.values()).sqrt()


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_batch_of_one_set_is_cut_by_its_examples(engine):
    case = Case("fine-tune", "scored", (5,))
    learner, episodes = case.learn(encoder_of("static")), case.episodes(1)
    parts = learner.shards(episodes, 4)
    assert [len(examples.examples) for part in parts for examples in part] == [1, 1, 1, 2]
    assert_same(in_shards(learner, episodes, engines(learner)[engine], 4), outer(learner, episodes))


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_shard_without_examples_adds_nothing(engine):
    """The last batch of a stage with scored pairs may hold one pair."""
    case = Case("fine-tune", "scored", (1,))
    learner, episodes = case.learn(encoder_of("bert")), case.episodes(1)
    assert [len(part) for part in learner.shards(episodes, 2)].count(0) == 1
    assert_same(in_shards(learner, episodes, engines(learner)[engine], 2), outer(learner, episodes))


def test_second_order_in_shards_has_the_same_gradient_where_layers_are_computed_again():
    """They are computed by the kernel that can be differentiated twice, in the way back of a shard, too."""
    case = Case("maml")
    learner = case.learn(encoder_of("bert"), first_order=False, inner_steps=1)
    episodes = case.episodes(2)
    assert_same(in_shards(learner, episodes, ReferenceGradients("on"), 2), outer(learner, episodes))


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_shard_without_texts_adds_nothing(engine):
    """The last batch of an epoch may hold one pair."""
    for case in (Case("distill", "translations", (1,)), Case("ema", "translations", (1,))):
        learner, episodes = case.learn(encoder_of("bert")), case.episodes(1)
        assert_same(in_shards(learner, episodes, engines(learner)[engine], 4), outer(learner, episodes))


def test_one_shard_is_what_the_gradients_compute_alone():
    case = Case("maml")
    learner, episodes = case.learn(encoder_of("static", torch.float32)), case.episodes(2)
    for gradients in engines(learner).values():
        alone, one = outer(learner, episodes, gradients), in_shards(learner, episodes, gradients, 1)
        assert all(torch.equal(alone.dense[name], value) for name, value in one.dense.items())
        assert alone.terms == one.terms


def test_a_learner_that_does_not_say_how_its_loss_is_cut_takes_one_shard():
    class Whole(Learner):
        def outer_loss(self, episodes):
            return OuterLoss(sum(p.sum() for _, p in self.named_parameters()))

    learner = Whole(encoder_of("static"), Loss(), None)
    learner.check_shards(1)
    with pytest.raises(ConfigError, match=r"shards: learner 'test-shards' .* takes 1"):
        learner.check_shards(2)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [7]), (2, [3, 4]), (4, [1, 2, 2, 2]), (8, [0, 1, 1, 1, 1, 1, 1, 1])]
)
def test_shards_are_stretches_of_even_length(count, expected):
    found = contiguous(range(7), count)
    assert [len(part) for part in found] == expected
    assert [i for part in found for i in part] == list(range(7))


def numbers(count, seed=0):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))


def test_gradients_are_added_along_a_balanced_tree():
    found = TreeSum()
    first = numbers(8)
    for one in first:
        found.add([one.clone(), None])
    a, b, c, d, e, f, g, h = first
    expected = ((a + b) + (c + d)) + ((e + f) + (g + h))
    assert torch.equal(found.total[0], expected)
    assert found.total[1] is None
    assert not torch.equal(expected, first.cumsum(0)[-1])  # so the test tells the orders apart


def rows(numbers, values, count=6):
    return of_rows(values, torch.tensor(numbers), torch.Size((count, 3)))


def test_rows_are_added_as_rows_and_what_one_does_not_have_keeps_its_bits():
    zeros = -torch.zeros(1, 3)
    one = rows([0, 2, 5], torch.cat([zeros, numbers(2)]))
    other = rows([2, 3], numbers(2, seed=1))
    (total,) = added([one], [other])
    assert total.is_coalesced()
    assert total.indices().tolist() == [[0, 2, 3, 5]]
    expected = torch.stack([zeros[0], numbers(2)[0] + numbers(2, seed=1)[0], numbers(2, seed=1)[1], numbers(2)[1]])
    assert total.values().view(torch.int32).tolist() == expected.view(torch.int32).tolist()
    assert math.copysign(1, total.values()[0, 0]) == -1
    assert all(math.copysign(1, value + NOTHING) == math.copysign(1, value) for value in (0.0, -0.0))


def test_rows_and_a_whole_table_make_a_whole_table():
    table = numbers(6)
    (total,) = added([rows([1], numbers(1, seed=1))], [table])
    expected = table.clone()
    expected[1] = numbers(1, seed=1)[0] + table[1]
    assert torch.equal(total, expected)


@pytest.mark.parametrize("shards", [1, 2])
def test_memory_that_does_not_suffice_on_the_way_back_is_said_so(shards, monkeypatch):
    """Also with gradients that know no way that needs less."""
    case = Case("maml")
    learner = case.learn(encoder_of("bert"), inner_steps=1)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("torch.autograd.backward", full)
    with pytest.raises(OutOfMemory, match=r"^out of memory on cpu in an outer step \(CUDA out of memory\)\. Less is"):
        outer_gradient(REFERENCE, learner, case.episodes(2), shards, ALONE)


def test_values_in_bfloat16_are_joined_in_float32():
    half, single = torch.ones(1, 2, dtype=torch.bfloat16), torch.ones(1, 2, dtype=torch.float64)
    assert joined([[half], [half]]).dtype == torch.float32
    assert joined([[single], [single]]).dtype == torch.float64
