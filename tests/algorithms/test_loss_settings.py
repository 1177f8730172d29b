"""Losses by name: what a recipe says, what is checked and when, and what files hold."""

import sys
from types import ModuleType

import pytest

from helpers.small import SmallEncoder, episode
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.losses.base import Loss as SetLoss
from metasearch.algorithms.losses.base import fitting, losses_of
from metasearch.config import registry, yaml
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Loss, Recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.pipelines import factory
from metasearch.training.trainer import Trainer

INFONCE = {"name": "infonce", "margin": 1.0, "distance": "euclidean", "temperature": 0.05, "align": "none"}


def read(tmp_path, written):
    """Read a recipe whose loss is written so."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"recipe: mine\ndescription: mine\nlearner: maml\nouter: {{lr: 1e-3}}\nloss: {written}\n", "utf-8")
    return yaml.read(path, Recipe)


@pytest.mark.parametrize(
    ("written", "held"),
    [
        ("{}", {"name": None, "margin": 1.0, "distance": "euclidean"}),
        ("{margin: 0.2, distance: cosine}", {"name": None, "margin": 0.2, "distance": "cosine"}),
        ("{name: triplet, margin: 0.2}", {"name": "triplet", "margin": 0.2, "distance": "euclidean"}),
        ("{name: infonce}", INFONCE),
        ("{name: infonce, temperature: 0.1, margin: 0.2}", {**INFONCE, "margin": 0.2, "temperature": 0.1}),
        ("{name: infonce, align: infonce}", {**INFONCE, "align": "infonce"}),
        (
            "{name: [infonce, cosine-mse], temperature: 0.1}",
            {**INFONCE, "name": ["infonce", "cosine-mse"], "temperature": 0.1},
        ),
    ],
)
def test_a_run_holds_the_name_where_there_is_one_and_all_options_and_is_read_back_as_it_was(tmp_path, written, held):
    resolved = factory.resolved(read(tmp_path, written))
    assert resolved.model_dump(mode="json")["loss"] == held
    tree = yaml.dump(resolved.model_dump(mode="json"))
    (tmp_path / "written.yaml").write_text(tree, encoding="utf-8")
    again = factory.resolved(yaml.read(tmp_path / "written.yaml", Recipe))
    assert again == resolved


def test_without_a_name_triplets_have_the_triplet_loss_and_scored_pairs_the_cosine_against_gold():
    triplet, pairs = losses_of(Loss(margin=0.3))
    assert (triplet.columns, triplet.options.margin) == (("question", "positive", "negative"), 0.3)
    assert pairs.columns == ("text1", "text2")


def test_of_several_losses_the_first_that_fits_the_examples_is_taken():
    contrast, pairs = losses_of(Loss(name=("infonce", "cosine-mse"), temperature=0.2))
    assert contrast.options.temperature == 0.2
    assert fitting((contrast, pairs), {"question": (), "positive": (), "negative": ()}) is contrast
    assert fitting((contrast, pairs), {"text1": (), "text2": ()}) is pairs


def test_an_option_that_a_recipe_has_for_its_own_loss_is_left_out_with_null_for_another():
    assert load_recipe("maml-e5").loss.options({"temperature"}) == {"temperature": "0.05"}
    recipe = load_recipe("maml-e5", ["loss.name=triplet", "loss.margin=0.4", "loss.temperature=null"])
    (loss,) = losses_of(factory.resolved(recipe).loss)
    assert loss.options.model_dump() == {"margin": 0.4, "distance": "euclidean"}


def test_it_is_named_when_training_begins_with_random_negatives(monkeypatch, caplog):
    monkeypatch.setattr(Trainer, "fit", lambda trainer, resume: None)
    changes = ["loss.name=infonce", "loss.margin=0.5", "episodes.negatives=random"]
    recipe = load_recipe("fine-tune-tiny", changes)
    learner = factory.make_learner(recipe, load_encoder("tiny", device="cpu"))

    factory.fit(learner, load_benchmark("demo", "trans"), recipe)

    assert ["loss.margin=0.5" in message for message in caplog.messages if "ignores options" in message] == [True]


def test_a_loss_of_a_package_is_one_file(monkeypatch):
    """It pulls the second text of scored pairs towards the first, whatever the gold."""

    class Together(SetLoss):
        columns = ("text1", "text2")

        def __call__(self, batch):
            return (batch.vectors["text1"] - batch.vectors["text2"]).square().sum(1).mean()

    module = ModuleType("together")
    module.LOSS = Together
    monkeypatch.setitem(sys.modules, "together", module)
    monkeypatch.setattr(registry, "load", lambda kind, name: {("losses", "together"): module}[kind, name])
    encoder, (examples,) = SmallEncoder(), episode("a", "pairs", sizes=(3,)).sets
    learner = FineTune(encoder, Loss(name="together"), FineTune.Options())

    found = learner.outer_loss([episode("a", "pairs", sizes=(3,))]).total.item()

    first, second = (encoder.encode([pair.texts[side] for pair in examples.examples], "text") for side in (0, 1))
    assert found == pytest.approx(((first - second) ** 2).sum(1).mean(), rel=1e-6)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{name: []}", r"mine\.yaml:5: loss\.name\.tuple.* at least 1 item"),
        ("{name: [infonce, triplte]}", r"unknown loss 'triplte'\. Did you mean 'triplet'\?"),
        ("{name: [infonce, cosine-mse], temprature: 1}", r"temprature: .* no such option\. Did you mean 'temperature'"),
        ("{magrin: 1}", r"mine\.yaml:5: loss\.magrin: unknown key\. Did you mean 'margin'\?"),
        ("{margin: -1}", r"mine\.yaml:5: loss\.margin: .* \(got '-1'\)"),
        (
            "{name: infonce, temprature: 1}",
            r"'mine': loss: temprature: loss infonce has no .*\. Did you mean 'temperature'",
        ),
        ("{name: infonce, align: jds}", r"recipe 'mine': loss: align: .*'none', 'infonce' or 'jsd' \(got 'jds'\)"),
        ("{name: triplet, align: jsd}", r"recipe 'mine': loss: align: loss triplet has no such option"),
        ("{name: cosine-mse, temperature: 1}", r"temperature: .* Known: none\. null leaves it out: --set loss\.temp"),
    ],
)
def test_what_is_wrong_with_a_loss_is_named_with_the_nearest_right_choice(tmp_path, written, says):
    with pytest.raises(ConfigError, match=says):
        factory.resolved(read(tmp_path, written))
