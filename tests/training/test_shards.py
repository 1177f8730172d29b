"""Outer gradients in shards: those of one shard but for rounding, in an order of sums that is a property of shards."""

from functools import partial

import pytest
import torch

from helpers.gradients import Case, encoder_of, error, outer
from helpers.sharded import CASES
from metasearch.algorithms.base import EpisodeLearner, OuterLoss, contiguous
from metasearch.config import registry
from metasearch.config.recipe import Loss
from metasearch.errors import OutOfMemory
from metasearch.training.distributed import TreeSum, added, of_rows
from metasearch.training.outer_gradients import OuterGradients

CONTRAST = Case("distill", "translations", (3,), (("contrast", "soft"),))


def in_shards(learner, episodes, shards, **given):
    """Return the outer gradient of so many shards."""
    return outer(learner, episodes, partial(OuterGradients(learner.encoder, **{"workers": 2, **given}), shards=shards))


def assert_same(found, expected):
    assert error(found, expected) < 1e-10
    assert found.loss.item() == pytest.approx(expected.loss.item(), rel=1e-10)
    assert found.terms == pytest.approx(expected.terms, rel=1e-10)
    assert not found.loss.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("case", {case.learner: case for case in [*CASES, CONTRAST]}.values(), ids=str)
def test_shards_have_the_gradient_and_the_loss_of_the_whole_meta_batch(case):
    """In float64 to 1e-10, against the formula as it is written; contrasts compare the texts of all shards."""
    learner = case.learn(encoder_of("bert"), inner_steps=2)
    episodes = case.episodes(4)
    assert_same(in_shards(learner, episodes, 4), outer(learner, episodes))


def test_every_learner_is_here():
    assert {case.learner for case in CASES} == set(registry.names("learners"))


def test_a_batch_of_one_set_is_cut_by_its_examples():
    case = Case("fine-tune", "pairs", (5,))
    learner, episodes = case.learn(encoder_of("bert")), case.episodes(1)
    parts = learner.shards(episodes, 4)
    assert [len(examples.examples) for (sets,) in parts for examples in sets] == [1, 1, 1, 2]
    assert_same(in_shards(learner, episodes, 4), outer(learner, episodes))


@pytest.mark.parametrize(
    ("learner", "kind"), [("fine-tune", "pairs"), ("distill", "translations"), ("ema", "translations")]
)
def test_a_shard_without_examples_adds_nothing(learner, kind):
    """The last batch of an epoch may hold one pair."""
    case = Case(learner, kind, (1,))
    learner, episodes = case.learn(encoder_of("bert")), case.episodes(1)
    assert_same(in_shards(learner, episodes, 4), outer(learner, episodes))


class Uneven(EpisodeLearner):
    """Weighs the losses of one name differently, which one sum of gradients for each name cannot."""

    def losses(self, model, sets):
        yield "task", model.weights[0].sum()

    def combine(self, values, episodes):
        return OuterLoss((values["task"] * torch.arange(len(episodes))).sum())


def test_losses_of_a_name_must_count_alike():
    learner = Uneven(encoder_of("bert"), Loss(), None)
    with pytest.raises(ValueError, match=r"Uneven\.combine weighs losses called 'task' differently"):
        in_shards(learner, Case("maml").episodes(2), 1)


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


def test_rows_are_added_as_rows_and_with_a_whole_table_make_a_whole_one():
    one, other = rows([0, 2, 5], numbers(3)), rows([2, 3], numbers(2, seed=1))
    (total,) = added([one], [other])
    assert total.is_coalesced()
    assert total.indices().tolist() == [[0, 2, 3, 5]]
    expected = torch.stack([numbers(3)[0], numbers(3)[1] + numbers(2, seed=1)[0], numbers(2, seed=1)[1], numbers(3)[2]])
    assert torch.equal(total.values(), expected)
    table = numbers(6)
    (total,) = added([rows([1], numbers(1, seed=1))], [table])
    expected = table.clone()
    expected[1] = numbers(1, seed=1)[0] + table[1]
    assert torch.equal(total, expected)


@pytest.mark.parametrize("shards", [1, 2])
def test_memory_that_does_not_suffice_in_the_backward_pass_is_said_so(shards, monkeypatch):
    case = Case("distill", "translations", (3,))
    learner = case.learn(encoder_of("bert"))

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("torch.autograd.grad", full)
    with pytest.raises(OutOfMemory, match=r"^out of memory on cpu in an outer step \(CUDA out of memory\)\. Less is"):
        in_shards(learner, case.episodes(2), shards)
