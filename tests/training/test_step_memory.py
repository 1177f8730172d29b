"""What an outer step takes of memory is said before the first; layers are computed again where it is too much."""

import logging
from dataclasses import replace

import pytest
import torch

from helpers.backbones import make
from helpers.gradients import PLAIN, STEPPING, Case, encoder_of
from helpers.training import same, start, weights
from metasearch.errors import OutOfMemory
from metasearch.fast import FastGradients
from metasearch.jobs import compose
from metasearch.learners.gradients import ReferenceGradients
from metasearch.runs.ranks import Rank
from metasearch.spec.declared import Declared
from metasearch.spec.recipe import Loss, Outer
from metasearch.training import memory
from metasearch.training.memory import step_memory

OUTER = Outer(lr=1e-3)
LARGE = 2**50
PARTS = ("weights", "gradients", "optimiser", "activations")


@pytest.fixture
def there(monkeypatch):
    """Return a function that sets how much memory there is."""

    def set_to(size):
        monkeypatch.setattr("metasearch.training.memory.capacity", lambda device: int(size))

    return set_to


def said(caplog):
    return [message for message in caplog.messages if message.startswith("memory: ")]


def parts_of(case, family="bert", engine=None, settings=None, **options):
    """Return the parts that are predicted, in float64, on one thread."""
    learner = case.learn(encoder_of(family, layers=2), **options)
    gradients = engine or FastGradients(learner.encoder, workers=1, checkpointing="off")
    return step_memory(learner, gradients, case.episodes(), settings or OUTER).parts


def test_weights_are_those_of_the_encoder_and_the_best_ones_and_an_optimiser_has_two_moments_or_one():
    size = encoder_of("bert", layers=2).size
    found = parts_of(Case("fine-tune"))
    assert found["weights"] == 2 * size
    assert found["optimiser"] == 2 * size
    assert parts_of(Case("fine-tune"), settings=Outer(lr=1e-3, optimizer="lars"))["optimiser"] == size


def test_a_moving_teacher_counts_with_what_rounding_has_kept_from_it():
    size = encoder_of("bert", layers=2).size
    step = torch.tensor(0).nbytes
    assert parts_of(PLAIN[6])["weights"] == 4 * size + step


def test_gradients_have_the_rows_of_the_words_that_there_are():
    """Outer gradient, and that of a set; with inner steps also the weights that move."""
    case = Case("fine-tune")
    encoder = encoder_of("bert", layers=2)
    texts = {
        (role, text)
        for episode in case.episodes()
        for examples in episode.sets
        for example in examples.examples
        for role, text in zip(example.roles.values(), example.texts, strict=True)
    }
    words = {int(word) for role, text in texts for row in encoder.tokens([text], role) for word in row[0]}
    table = encoder.input.words.weight
    moved = encoder.size - table.nbytes + len(words) * table[0].nbytes
    assert parts_of(case)["gradients"] == 2 * moved
    assert parts_of(Case("maml"), inner_steps=3)["gradients"] == 3 * moved


def test_a_learner_of_second_order_takes_an_inner_step_whatever_its_options_are_called():
    learner = Case("maml").learn(encoder_of("bert", layers=2), inner_steps=1, first_order=False)
    known = step_memory(learner, ReferenceGradients(), Case("maml").episodes(), OUTER).parts
    learner.options = Declared()
    assert learner.second_order
    found = step_memory(learner, ReferenceGradients(), Case("maml").episodes(), OUTER).parts
    assert found["gradients"] == known["gradients"]
    # Twice those of a pass, in which dropout is drawn anew.
    assert found["activations"] == pytest.approx(known["activations"], rel=0.05)


@pytest.mark.parametrize("adapt", ["last:1", "bias", "lora:2"])
def test_a_job_has_copies_of_the_weights_that_adapt_alone(adapt):
    """Outer gradient and that of a job, of all; with low-rank updates the projections are what a job has for itself."""
    encoder = encoder_of("bert", layers=2)
    whole = parts_of(Case("fine-tune"))["gradients"] / 2
    parts = {"last:1": (".layer.1.",), "bias": (".bias",), "lora:2": (".query.weight", ".value.weight")}[adapt]
    named = encoder.embedder.named_parameters()
    own = sum(weight.nbytes for name, weight in named if any(part in name for part in parts))
    assert parts_of(Case("maml"), inner_steps=3, adapt=adapt)["gradients"] == 2 * whole + own
    engine = FastGradients(encoder, "recompute", 1, "off")
    again = parts_of(Case("maml"), engine=engine, inner_steps=3, adapt=adapt, first_order=False)
    assert again["gradients"] == 2 * whole + (1 + 3) * own
    reference = [parts_of(Case("maml"), engine=ReferenceGradients("off"), adapt=one) for one in ("all", adapt)]
    assert reference[0]["gradients"] == reference[1]["gradients"]


@pytest.mark.parametrize("adapt", ["last:1", "bias", "lora:2"])
def test_activations_where_a_part_adapts_are_not_more_than_those_of_all(adapt):
    """What is said is an upper bound: inner steps keep less, and the last loss keeps all of its smaller set."""
    case = Case("maml", sizes=(2, 2))
    learner, episodes = case.learn(encoder_of("bert", layers=2), inner_steps=2, adapt=adapt), case.episodes()
    whole = case.learn(encoder_of("bert", layers=2), inner_steps=2)
    engine = FastGradients(learner.encoder, "graph", 1)
    assert kept_at_once(learner, episodes, engine) <= 1.1 * kept_at_once(whole, episodes, engine)


def test_translations_of_questions_count_as_texts_of_their_set():
    """Their words in the rows that move, and their tokens in what autograd keeps, which grows with tokens alone."""
    aligned = Loss(name="infonce", align="jsd")
    encoder, plain, more = encoder_of("bert", layers=2), Case("fine-tune"), Case("fine-tune", "translated")
    tokens = {}
    for case in (plain, more):
        (examples, *_), *_ = (episode.sets for episode in case.episodes(1))
        texts = {pair for t in examples.examples for pair in zip(t.roles.values(), t.texts, strict=True)}
        tokens[case] = sum(int(encoder.lengths([text], role)[0]) for role, text in texts)
    found = {
        case: step_memory(
            case.learn(encoder, loss),
            FastGradients(encoder, workers=1, checkpointing="off"),
            [replace(case.episodes(1)[0], sets=case.episodes(1)[0].sets[:1])],
            OUTER,
        ).parts
        for case, loss in ((plain, Loss()), (more, aligned))
    }
    assert tokens[more] > tokens[plain]
    grown = found[more]["activations"] / found[plain]["activations"]
    assert grown == pytest.approx(tokens[more] / tokens[plain], rel=0.05)
    assert found[more]["gradients"] > found[plain]["gradients"]


def kept_at_once(learner, episodes, gradients):
    """Return the most bytes that autograd kept at the same time in an outer step, in this thread."""
    held, peaks = {}, [0]

    def pack(tensor):
        whole = tensor if tensor._base is None else tensor._base
        # Weights are no activations.
        return Kept(tensor) if not (whole.is_leaf and whole.requires_grad) else tensor.detach()

    class Kept:
        def __init__(self, tensor):
            self.tensor, self.key = tensor.detach(), tensor.untyped_storage().data_ptr()
            count = held.get(self.key, (0, 0))[0]
            held[self.key] = (count + 1, tensor.untyped_storage().nbytes())
            if not count:
                peaks.append(max(peaks[-1], sum(size for _, size in held.values())))

        def __del__(self):
            count, size = held[self.key]
            held[self.key] = (count - 1, size)
            if count == 1:
                del held[self.key]

    for _, parameter in learner.named_parameters():
        parameter.grad = None  # tests share encoders
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: getattr(kept, "tensor", kept)):
        gradients(learner, episodes)
    for _, parameter in learner.named_parameters():
        parameter.grad = None
    return peaks[-1]


@pytest.mark.parametrize(
    ("case", "options"),
    [
        (Case("fine-tune"), {}),
        (Case("maml"), {"inner_steps": 2}),
        (Case("maml-align", sizes=(3, 2, 2)), {"inner_steps": 2}),
        (PLAIN[2], {}),
        (Case("maml"), {"inner_steps": 2, "first_order": False}),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "family", ["bert", *(pytest.param(family, marks=pytest.mark.slow) for family in ("mpnet", "modernbert"))]
)
def test_activations_are_about_those_that_are_kept(case, options, family):
    """Less by what the loss keeps of so small an encoder, more by support sets, which the reference is done with."""
    learner, episodes = case.learn(encoder_of(family, layers=2), **options), case.episodes()
    for engine in FastGradients(learner.encoder, "graph", 1), ReferenceGradients():
        found = step_memory(learner, engine, episodes, OUTER)
        kept = kept_at_once(learner, episodes, engine)
        assert 0.6 < found.parts["activations"] / kept < 2.5


@pytest.mark.parametrize("first_order", [True, False])
def test_word_vectors_keep_something_too(first_order):
    assert parts_of(Case("maml"), "static", inner_steps=1, first_order=first_order)["activations"] > 0


def test_inner_steps_keep_nothing_of_layers_below_those_that_adapt():
    """Reptile takes inner steps alone: of four layers it keeps about one, and the loss."""
    case = Case("reptile")
    kept = {}
    for adapt in ("all", "last:1"):
        learner = case.learn(encoder_of("bert", layers=4), inner_steps=1, adapt=adapt)
        kept[adapt] = kept_at_once(learner, case.episodes(), FastGradients(learner.encoder, workers=1))
    assert 0.2 < kept["last:1"] / kept["all"] < 0.4


def test_a_learner_without_a_fast_form_is_counted_as_the_reference_takes_it():
    class Another(type(Case("maml").learn(encoder_of("bert")))):
        pass

    learner, episodes = Case("maml").learn(encoder_of("bert", layers=2), inner_steps=1), Case("maml").episodes()
    plain = step_memory(learner, ReferenceGradients("off"), episodes, OUTER)
    learner.__class__ = Another
    found = step_memory(learner, FastGradients(learner.encoder), episodes, OUTER)
    assert found.parts == pytest.approx(plain.parts, rel=0.01)  # measured, so not the same to the last byte


@pytest.mark.parametrize(("learner", "steps"), [("maml", 1), ("maml", 3)])
def test_graphs_of_second_order_grow_with_the_steps_and_steps_computed_again_keep_their_weights(learner, steps):
    case = Case(learner)
    options = {"inner_steps": steps, "first_order": False}
    encoder = encoder_of("bert", layers=2)
    graph, again = (
        parts_of(case, engine=FastGradients(encoder, mode, 1), **options) for mode in ("graph", "recompute")
    )
    assert graph["activations"] == pytest.approx((steps + 1) * again["activations"], rel=0.1)
    moved = graph["gradients"] / 3
    assert again["gradients"] == graph["gradients"] + steps * moved


@pytest.mark.slow
def test_checkpointing_keeps_less_and_the_more_layers_the_less():
    def share(layers):
        learner = Case("fine-tune").learn(encoder_of("bert", layers=layers))
        ways = (FastGradients(learner.encoder, workers=1, checkpointing=choice) for choice in ("on", "off"))
        on, off = (step_memory(learner, way, Case("fine-tune").episodes(), OUTER).parts["activations"] for way in ways)
        return on / off

    assert share(4) < share(2) < 1


@pytest.mark.slow
def test_measuring_leaves_weights_modes_gradients_and_random_numbers_as_they_are():
    learner = STEPPING[0].learn(encoder_of("bert", layers=2), inner_steps=1, first_order=False)
    for _, parameter in learner.named_parameters():
        parameter.grad = None  # other tests have the same encoder
    before, state = weights(learner), torch.get_rng_state()
    learner.train(True)
    try:
        step_memory(learner, ReferenceGradients("on"), STEPPING[0].episodes(), OUTER)
        assert learner.encoder.embedder.training
    finally:
        learner.train(False)
    assert torch.equal(torch.get_rng_state(), state)
    assert same(weights(learner), before)
    assert all(parameter.grad is None for _, parameter in learner.named_parameters())
    assert not any(type(module).__name__ == "Checkpointed" for module in learner.encoder.embedder.modules())


def of_four_layers():
    """Return a learner, its benchmark and its recipe."""
    _, benchmark, recipe = start()
    return compose.make_learner(recipe, make("bert", layers=4)), benchmark, recipe


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_training_says_it_once_and_keeps_layers_where_they_fit(caplog, there, engine):
    caplog.set_level(logging.INFO)
    there(LARGE)
    compose.fit(*start(), max_steps=1, gradients=engine)
    (line,) = said(caplog)
    assert line.startswith("memory: an outer step takes about ")
    assert all(f"{part} " in line for part in PARTS)
    assert "again" not in line


@pytest.mark.slow
def test_where_they_do_not_fit_layers_are_computed_again_to_the_same_bits(caplog, there):
    learner, benchmark, recipe = of_four_layers()
    there(LARGE)
    trainer = compose.trainer_of(learner, benchmark, recipe, max_steps=2)
    whole = step_memory(learner, trainer.gradients, trainer.gradient().episodes, recipe.outer).needed
    compose.fit(learner, benchmark, recipe, max_steps=2)
    caplog.set_level(logging.INFO)
    caplog.clear()
    there((whole - 1) / memory._SHARE)
    other, *rest = of_four_layers()
    compose.fit(other, *rest, max_steps=2)
    (line,) = said(caplog)
    assert "; layers are computed again on the way back; otherwise it would be " in line
    assert same(weights(other), weights(learner))


def test_what_does_not_fit_in_that_way_either_is_an_error_with_the_figures_before_any_step(there):
    there(1000)
    learner, benchmark, recipe = start()
    before = weights(learner)
    with pytest.raises(OutOfMemory, match=r"of 0 MiB \(weights .* smaller budget\.meta_batch") as caught:
        compose.fit(learner, benchmark, recipe, max_steps=1)
    assert caught.value.exit_code == 8
    assert same(weights(learner), before)


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["on", "off"])
def test_who_chooses_is_told_and_not_stopped(caplog, there, choice):
    caplog.set_level(logging.INFO)
    there(1000)
    compose.fit(*start(), max_steps=1, checkpointing=choice)
    (line,) = said(caplog)
    assert line.endswith("; layers are computed again on the way back") == (choice == "on")


def test_processes_of_one_machine_share_its_memory_and_the_texts_of_a_batch(there):
    there(LARGE)
    of_texts, of_sets = PLAIN[6], Case("fine-tune")

    def found(case, rank):
        learner = case.learn(encoder_of("bert", layers=2))
        engine = FastGradients(learner.encoder, workers=1, checkpointing="off")
        return step_memory(learner, engine, case.episodes(), OUTER, rank=rank)

    alone, one_of_four = (found(of_texts, rank) for rank in (Rank(), Rank(1, 4, 1, 2)))
    assert one_of_four.there == LARGE // 2
    # Measured, so not the same to the last byte.
    assert one_of_four.parts["activations"] == pytest.approx(alone.parts["activations"] / 4, rel=0.01)
    # One set at a time, in whatever process.
    assert found(of_sets, Rank(1, 4, 1, 2)).parts == pytest.approx(found(of_sets, Rank()).parts, rel=0.01)


@pytest.mark.parametrize(("size", "said"), [(LARGE, "kept"), (1, "inner steps are computed again on the way back")])
def test_whether_second_order_graphs_are_kept_is_decided_before_the_first_step(there, caplog, monkeypatch, size, said):
    """By the first meta-batch, also where a run goes on at another one; several processes decide alike."""

    def asked(*_):
        raise AssertionError

    there(LARGE)
    monkeypatch.setattr("metasearch.fast.encoder.capacity", lambda device: size)
    monkeypatch.setattr("metasearch.fast.encoder.graph_size", asked)
    caplog.set_level(logging.INFO)
    settings = "options.first_order=false", "dropout=false"
    trainer = compose.trainer_of(*start("maml-tiny", "trans", *settings), max_steps=2, checkpointing="off")
    trainer.step = 1
    trainer.gradient()
    (message,) = [message for message in caplog.messages if message.startswith("second order: graphs")]
    assert message.endswith(f" of memory: {said}")
