"""The teacher that follows the student: its schedule, its arithmetic, its gradient, and that it survives a kill."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from helpers.reference import assert_same, gradients, learned, weights_of
from helpers.small import SmallEncoder, SmallNet, translation_episode
from metasearch.algorithms.ema import EMA, share
from metasearch.config.recipe import Loss

EXACT = 1e-10


class PairNet(SmallNet):
    """`SmallNet` that gives the vector before normalisation, too."""

    def forward(self, features, output="sentence"):
        hidden = self.tokens(features["input_ids"]).mean(dim=1) * self.scale
        hidden = torch.tanh(self.first(hidden))
        pooled = hidden + torch.tanh(self.second(hidden))
        return F.normalize(pooled, dim=-1) if output == "sentence" else pooled


@pytest.fixture
def encoder():
    made = SmallEncoder()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made.embedder = PairNet().double()
    return made


PAIRS = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("a dog", "der Hund"), ("two", "zwei")]


def made(encoder, **options):
    return EMA(encoder, Loss(), EMA.Options(**options))


def disturb(module, size=0.3):
    with torch.no_grad():
        for i, weight in enumerate(weights_of(module).values()):
            weight += size * torch.linspace(-1 - i, 2, weight.numel(), dtype=weight.dtype).view_as(weight)


@pytest.mark.parametrize("output", ["pooled", "sentence"])
def test_the_loss_is_the_squared_error_of_translations_against_the_teachers_sources(encoder, output):
    """L = 1/(N D) Σ ‖f_θ(t) − f_ξ(s)‖², and its gradient flows into θ alone."""
    learner = made(encoder, output=output)
    disturb(learner.teacher)
    student, teacher = weights_of(encoder.embedder), dict(learner.teacher.named_parameters())

    def vectors(weights, texts):
        hidden = functional_call(encoder.embedder, weights, (encoder.features(texts, "text"), "pooled"))
        return hidden / hidden.square().sum(1, keepdim=True).sqrt() if output == "sentence" else hidden

    gaps = vectors(student, [t for _, t in PAIRS]) - vectors(teacher, [s for s, _ in PAIRS])
    expected = sum(gap.square().sum() for gap in gaps) / (len(PAIRS) * gaps.shape[1])

    total, gradient = learned(learner, [translation_episode(*PAIRS[:1]), translation_episode(*PAIRS[1:])])

    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_same(gradient, gradients(expected, student), EXACT)
    assert gradient["first.weight"].norm() > 1e-3
    assert all(weight.grad is None and not weight.requires_grad for weight in learner.teacher.parameters())


@pytest.mark.parametrize("total", [300, 2_000, 105_000])
def test_scaled_down_the_teacher_moves_as_far_in_a_shorter_training(total):
    options = EMA.Options(scale_down=True)
    assert share(0, total, options) == pytest.approx(1.05 / total, rel=1e-9)
    moved = 1 - math.prod(1 - share(k, total, options) for k in range(1, total + 1))
    assert moved == pytest.approx(1 - 0.592, abs=2e-3)


def follow(begin, goal, steps, share):
    """Return an EMA teacher's learner after steps with a share of a student that stands at the goal from the first."""
    network = nn.Module()
    network.weight = nn.Parameter(begin.clone())
    encoder = SimpleNamespace(name="lines", device=torch.device("cpu"), embedder=network)
    learner = EMA(encoder, Loss(), EMA.Options(tau=1 - share, schedule="constant"))
    with torch.no_grad():
        learner.encoder.embedder.weight.copy_(goal)
    for _ in range(steps):
        learner.after_step()
    return learner


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (2**20 + 5,), (1000, 131)])
def test_weights_of_any_shape_are_averaged_whole(shape):
    begin, goal = (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in (1, 0))
    expected = torch.lerp(begin.double(), goal.double(), 0.25)
    assert torch.equal(follow(begin, goal, 1, 0.25).teacher.weight, expected.float())


def test_float32_loses_every_small_move_and_the_average_none():
    """A share of 1e-5 of a difference of 0.25 % is below half of the last bit of 1."""
    start, end = torch.tensor([1.0, -1.5, 0.75, 1e-3]), torch.tensor([1.0025, -1.504, 0.7515, 1.003e-3])
    steps, small = 5_000, 1e-5
    assert torch.equal(torch.lerp(start, end, small), start)
    learner = follow(start, end, steps, small)
    exact = end.double() + (start.double() - end) * (1 - small) ** steps
    assert ((learner.state()["teacher.weight"] - exact).abs() <= 1e-6 * (end - start).abs()).all()
    # The weights that the teacher runs on are that to the last bit.
    assert ((learner.teacher.weight.double() - exact).abs() <= 2**-24 * exact.abs()).all()
    assert (learner.teacher.weight != start).all()


def walked(encoder, steps, **options):
    """Return the teacher's weights after some steps with a student that stands elsewhere."""
    learner = made(encoder, **options)
    start = {name: weight.clone() for name, weight in learner.teacher.named_parameters()}
    disturb(encoder.embedder)
    learner.begin(steps)
    for _ in range(steps):
        learner.after_step()
    return start, dict(encoder.embedder.named_parameters()), dict(learner.teacher.named_parameters())


@pytest.mark.parametrize(
    ("steps", "options", "applied"),
    [
        (12, {"tau": 0.9}, 12),
        (12, {"tau": 0.9, "schedule": "constant"}, 12),
        (12, {"tau": 0.9, "total": 24}, 12),
        (12, {"tau": 0.9, "total": 6}, 6),
    ],
)
def test_an_update_takes_the_product_of_the_taus_of_its_steps(encoder, steps, options, applied):
    """The student stands still, so Πτ_k of the first teacher is left, however the steps are put together."""
    start, student, teacher = walked(encoder, steps, **options)
    total = options.get("total") or steps
    constant = options.get("schedule") == "constant"
    taus = [0.9 if constant else 1 - 0.1 * (math.cos(math.pi * k / total) + 1) / 2 for k in range(1, applied + 1)]
    left = math.prod(taus)
    for name, weight in teacher.items():
        expected = left * start[name] + (1 - left) * student[name].detach()
        torch.testing.assert_close(weight, expected, rtol=1e-13, atol=1e-15)


def test_with_tau_1_the_teacher_is_frozen_and_with_tau_0_it_is_the_student(encoder):
    start, _, teacher = walked(encoder, 5, tau=1)
    assert all(torch.equal(weight, start[name]) for name, weight in teacher.items())
    _, student, teacher = walked(encoder, 5, tau=0, schedule="constant")
    assert all(torch.allclose(weight, student[name], rtol=1e-15) for name, weight in teacher.items())
