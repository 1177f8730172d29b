"""The option `adapt`: what it may say, which weights it means in each family, and the outer gradient by hand."""

import pytest
import torch
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from helpers.backbones import CONFIGS, make
from helpers.gradients import STEPPING, encoder_of, outer
from helpers.reference import Reference, assert_same, distance, gradients, learned, weights_of
from helpers.small import SmallEncoder, episode
from metasearch.compress.student import make_student
from metasearch.errors import ConfigError
from metasearch.learners.adapt import Adaptation
from metasearch.learners.inner_loop import FastModel
from metasearch.learners.maml import MAML
from metasearch.learners.maml_align import MAMLAlign
from metasearch.learners.meta_sgd import MetaSGD
from metasearch.learners.reptile import Reptile
from metasearch.spec import yaml
from metasearch.spec.recipe import Loss
from metasearch.spec.seeding import stream

INNER = [MAML, MAMLAlign, MetaSGD, Reptile]
ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first order", "second order"])
RATE, MARGIN, EXACT = 0.6, 0.8, 1e-10
QUERY = {"distilbert": "q_lin", "mpnet": "q", "modernbert": "Wqkv"}
VALUE = {"distilbert": "v_lin", "mpnet": "v", "modernbert": "Wqkv"}


def adapting(encoder, adapt):
    return [name for name, _ in Adaptation(encoder, adapt).named()]


def names(encoder):
    return [name for name, weight in encoder.embedder.named_parameters() if weight.requires_grad]


@pytest.mark.parametrize("learner", INNER)
@pytest.mark.parametrize("written", ["last", "last:0", "last:-1", "last:1.5", "last:x", "biases", "lora", "lora:0", ""])
def test_another_value_is_refused_and_the_known_ones_are_named(learner, written):
    with pytest.raises(ConfigError) as error:
        yaml.check({"adapt": written}, learner.Options, "recipe 'mine': options")
    known = "expected one of all, last:N (N layers, 1 or more), bias, lora:R (rank R, 1 or more)"
    assert str(error.value) == f"recipe 'mine': options: adapt: {known} (got '{written}')"


@pytest.mark.parametrize("learner", INNER)
def test_what_is_written_of_all_weights_is_what_was_written_before_there_was_a_choice(learner):
    assert "adapt" not in learner.Options().model_dump()
    assert "adapt" not in learner.Options(adapt="all").model_dump()
    assert learner.Options(adapt="last:2").model_dump()["adapt"] == "last:2"


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_last_layers_are_those_of_the_highest_numbers_and_the_dense_map_behind_them(kind):
    encoder = make(kind, dense=True, layers=3)
    for count in (1, 2, 3):
        layers = tuple(f".{word}.{number}." for word in ("layer", "layers") for number in range(3 - count, 3))
        behind = ("final_norm.", "model.2.")  # the norm is ModernBERT's
        expected = [name for name in names(encoder) if any(part in name for part in (*layers, *behind))]
        assert adapting(encoder, f"last:{count}") == expected
    assert "model.2.linear.weight" in expected
    assert not any("embeddings" in name or "relative_attention_bias" in name for name in expected)


@pytest.mark.parametrize("kind", CONFIGS)
def test_biases_are_vectors_of_that_name_those_of_layer_norm_among_them(kind):
    encoder = make(kind, dense=True, layers=2)
    found = adapting(encoder, "bias")
    assert found == [name for name in names(encoder) if name.endswith(".bias")]
    assert any("norm" in name.lower() for name in found) == (kind != "modernbert")  # which has none in its layers
    assert "model.2.linear.bias" in found


@pytest.mark.parametrize("kind", CONFIGS)
def test_low_rank_factors_are_those_of_the_query_and_value_projections(kind):
    encoder = make(kind, layers=2)
    sides = {QUERY.get(kind, "query"), VALUE.get(kind, "value")}
    projections = [name for name in names(encoder) if name.split(".")[-2] in sides and name.endswith(".weight")]
    together = kind == "modernbert"  # one projection for queries, keys and values
    assert len(projections) == 2 * (1 if together else 2)
    assert adapting(encoder, "lora:3") == [f"{name}.lora_{side}" for name in projections for side in "ab"]
    shapes = [(3, 16), (3 * 16 if together else 16, 3)] * len(projections)
    assert [tuple(value.shape) for _, value in Adaptation(encoder, "lora:3").named()] == shapes


def test_layers_that_run_several_times_count_once():
    student = make_student(make("xlm-roberta", layers=6), bottleneck=6, recurrent=2)
    assert {name.split(".layer.")[1][0] for name in adapting(student, "last:1")} == {"1"}
    assert len(adapting(student, "lora:2")) == 2 * 2 * 2
    with pytest.raises(ConfigError, match="has 2 layers, which run 3 times; N is at most 2"):
        Adaptation(student, "last:3")


@pytest.mark.parametrize(
    ("family", "adapt", "says"),
    [
        ("bert", "last:3", "options.adapt: 'last:3': encoder 'bert' has 2 layers; N is at most 2"),
        ("bert", "lora:17", "options.adapt: 'lora:17': encoder 'bert' has projections of 16 columns; R is at most 16"),
        ("static", "last:1", "has no layers; 'all' takes all of its weights"),
        ("static", "lora:1", "has no layers; 'all' takes all of its weights"),
        ("static", "bias", "has none that is trained; the inner loop would move nothing"),
        ("modernbert", "bias", "has none that is trained; the inner loop would move nothing"),
    ],
)
def test_what_an_encoder_does_not_have_is_an_error_before_any_step(family, adapt, says):
    with pytest.raises(ConfigError) as error:
        STEPPING[0].learn(encoder_of(family, layers=2), adapt=adapt)
    assert says in str(error.value)


def test_a_frozen_weight_does_not_adapt():
    encoder = make("bert", layers=2)
    for name, weight in encoder.embedder.named_parameters():
        weight.requires_grad_(".layer.1." not in name)
    with pytest.raises(ConfigError, match="has none that is trained"):
        Adaptation(encoder, "last:1")
    assert len(adapting(encoder, "lora:1")) == 2 * 2


def test_a_draw_of_the_low_rank_factors_is_the_same_one_every_time_and_has_the_identity_as_its_mean():
    """A ~ N(0, 1/r), B = 0, so W + B A = W at the start, and the mean of AᵀA over draws is I."""
    encoder = encoder_of("bert", layers=2)
    adaptation, again = (Adaptation(encoder, "lora:8") for _ in range(2))
    weights = list(weights_of(encoder.embedder).values())
    assert all(map(torch.equal, adaptation.start(weights), again.start(weights)))
    assert all(map(torch.equal, adaptation.merged(adaptation.start(weights)), weights))
    downs = torch.stack([value for name, value in adaptation.named() if name.endswith("a")])
    assert downs.square().mean().item() == pytest.approx(1 / 8, rel=0.2)
    assert len({down.sum().item() for down in downs}) == 4


def test_a_step_on_a_line_of_which_the_slope_stays_by_hand():
    """f(x) = a x + b and L = (f(x) − y)², b alone moves: b′ = b − ρ 2 (f(x) − y).

    dL(b′)/da = 2 (f′ − y) x (1 − 2 ρ) and dL(b′)/db = 2 (f′ − y) (1 − 2 ρ), without 2 ρ in first order.
    """
    a, b, x, y, rate = 0.5, 0.2, 2.0, 3.0, 0.1
    moved = b - rate * 2 * (a * x + b - y)
    pull = 2 * (a * x + moved - y)
    for first_order, factor in ((True, 1), (False, 1 - 2 * rate)):
        line = torch.nn.Linear(1, 1).double()
        line.weight.data.fill_(a)
        line.bias.data.fill_(b)
        fast = FastModel(line, first_order)
        inputs = torch.tensor([[x]], dtype=torch.float64)
        fast.adapt((fast(inputs) - y).square().sum(), [None, rate])
        assert [weight.item() for weight in fast.parameters()] == pytest.approx([a, moved])
        (fast(inputs) - y).square().sum().backward()
        assert line.weight.grad.item() == pytest.approx(pull * x * factor)
        assert line.bias.grad.item() == pytest.approx(pull * factor)


@ORDERS
@pytest.mark.parametrize("steps", [1, 3])
def test_maml_with_biases_alone_is_maml_with_a_rate_of_zero_for_all_other_weights(first_order, steps):
    encoder, episodes = SmallEncoder(), [episode("a"), episode("b")]
    weights, reference = weights_of(encoder.embedder), Reference(encoder, MARGIN)
    rates = {n: torch.tensor(RATE if n.endswith("bias") else 0.0, dtype=torch.float64) for n in weights}

    def by_hand(rate):
        adapted = [reference.descend(weights, [e.sets[0]] * steps, rate, first_order) for e in episodes]
        losses = [reference.loss(moved, e.sets[1]) for moved, e in zip(adapted, episodes, strict=True)]
        return torch.stack(losses).mean()

    options = MAML.Options(adapt="bias", inner_lr=RATE, inner_steps=steps, first_order=first_order)
    total, gradient = learned(MAML(encoder, Loss(margin=MARGIN), options), episodes)

    expected = by_hand(rates)
    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_same(gradient, gradients(expected, weights), EXACT)
    assert gradient["tokens.weight"].norm() > 0  # the outer loop moves it all the same
    assert distance(gradient, gradients(by_hand(RATE), weights)) > 1e-3


def test_reptile_with_biases_alone_gives_no_other_weight_a_gradient():
    encoder = SmallEncoder()
    learner = Reptile(encoder, Loss(margin=MARGIN), Reptile.Options(adapt="bias", inner_lr=RATE, inner_steps=2))
    _, gradient = learned(learner, [episode("a"), episode("b")])
    moved = {name for name, value in gradient.items() if value.count_nonzero()}
    assert moved == {"first.bias", "second.bias"}
    assert encoder.embedder.tokens.weight.grad is None


@ORDERS
def test_maml_with_low_rank_updates_by_hand(first_order):
    """W + B A for every query and value projection, B from 0 and A from its draw.

    L(θ, φ_2), φ_{t+1} = φ_t − ρ ∂L_support/∂φ(θ, φ_t); the outer gradient is of θ alone.
    """
    encoder, case, rank, rate, steps = encoder_of("bert", layers=2), STEPPING[0], 2, 0.2, 2
    learner = case.learn(encoder, adapt=f"lora:{rank}", inner_lr=rate, inner_steps=steps, first_order=first_order)
    (only,) = case.episodes(1)
    weights = weights_of(encoder.embedder)
    projected = [n for n in weights if n.endswith(("query.weight", "value.weight"))]

    def loss(phi, examples):
        sides = list(zip(phi[0::2], phi[1::2], strict=True))
        updated = {n: weights[n] + b @ a for n, (a, b) in zip(projected, sides, strict=True)}
        return learner.loss(lambda part: functional_call(encoder.embedder, weights | updated, (part,)), examples)

    phi = []
    for name in projected:
        drawn = stream(0, "lora", name, rank).normal(scale=rank**-0.5, size=(rank, 16))
        phi += [torch.from_numpy(drawn).requires_grad_(), torch.zeros(16, rank, dtype=torch.float64).requires_grad_()]
    support, query = (learner.prepare(examples) for examples in only.sets)
    with sdpa_kernel(SDPBackend.MATH):  # of which there is a second derivative
        for _ in range(steps):
            slopes = torch.autograd.grad(loss(phi, support), phi, create_graph=not first_order)
            phi = [side - rate * slope for side, slope in zip(phi, slopes, strict=True)]
        last = loss(phi, query)
        expected = gradients(last, weights)

    total, gradient = learned(learner, [only])

    assert total == pytest.approx(last.item(), rel=EXACT)
    assert distance(gradient, expected) < EXACT
    plain = outer(case.learn(encoder, inner_lr=rate, inner_steps=steps, first_order=first_order), [only]).dense
    assert distance(plain, {name: expected[name] for name in plain}) > 1e-3


def test_meta_sgd_learns_rates_of_what_adapts_alone():
    learner = MetaSGD(encoder_of("bert", layers=2), Loss(), MetaSGD.Options(adapt="lora:2", inner_lr=RATE))
    rates = {name.removeprefix("rate."): p for name, p in learner.named_parameters() if name.startswith("rate.")}
    assert list(rates) == adapting(learner.encoder, "lora:2")
    assert all((rate == RATE).all() for rate in rates.values())
