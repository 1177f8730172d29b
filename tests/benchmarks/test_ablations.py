"""The ablations of the multilingual encoder: what each arm trains, in which order, and the tables of what came out."""

import numpy as np
import pytest

from benchmarks.paper import ablation_arms, ablation_scores
from helpers.declarations import leaves
from metasearch.cli.distill import command, configure
from metasearch.errors import DataError
from metasearch.runs.per_query_results import QueryResults


@pytest.fixture
def places(tmp_path):
    for name in ("corpus", "data", "vocabulary"):
        (tmp_path / name).mkdir()
    scored = tmp_path / "data" / ablation_arms.SCORED
    scored.parent.mkdir()
    scored.touch()
    return ablation_arms.Places(tmp_path / "out", tmp_path / "corpus", tmp_path / "data", tmp_path / "vocabulary")


TRAINED = (
    "assistant", "single-stage", "full", "without-mcl", "without-recurrence", "bottleneck-64", "bottleneck-256",
    "recurrent-1", "recurrent-2", "ema",
)  # fmt: skip


def recipe_of(name, places, steps=(20, 30, 10)):
    flags = ablation_arms.flags_of(name, ablation_arms.Steps(*steps), places)
    parameters = dict(command.make_context("distill", flags).params)
    for own in ("output", "as_json"):
        del parameters[own]
    return configure(**parameters).recipe


@pytest.mark.parametrize("name", TRAINED)
def test_the_flags_of_an_arm_are_a_recipe_that_trains_its_stages_alike(places, name):
    recipe, arm = recipe_of(name, places), ablation_arms.ARMS[name]
    assert recipe.chosen == arm.stages
    for stage in arm.stages:
        found = recipe.stages[stage]
        steps = {"assistant": 20, "embedding": 30}.get(stage, 10)
        assert (found.budget.batch, found.budget.steps) == (128, steps * (2 if name == "single-stage" else 1))
        assert not found.dropout
        assert found.max_length == 64
        assert found.outer.optimizer == "lars" if stage == "align" else found.outer.lr == 1e-3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("without-mcl", {"stages.contrast.options.contrast": "none", "run": ("contrast",)}),
        ("without-recurrence", {"student.repeats": 1}),
        ("bottleneck-64", {"student.bottleneck": 64}),
        ("bottleneck-256", {"student.bottleneck": 256}),
        ("recurrent-1", {"student.recurrent": 1}),
        ("recurrent-2", {"student.recurrent": 2}),
    ],
)
def test_an_ablation_differs_from_the_full_recipe_in_one_thing(places, name, expected):
    found, full = (leaves(recipe_of(each, places).model_dump()) for each in (name, "full"))
    differs = {key: value for key, value in found.items() if value != full.get(key)}
    # The values of a stage that an arm does not train are those of the recipe as it ships.
    idle = {key for key in differs if key.startswith(("stages.embedding", "stages.student")) and name == "without-mcl"}
    assert {key: value for key, value in differs.items() if key not in idle} == expected


def test_a_figure_is_the_mean_over_languages_and_an_item_is_drawn_in_all_of_them():
    cells = [("both", "deu", ""), ("both", "tha", "")]
    results = QueryResults(
        {cells[0]: ("a", "b", "c"), cells[1]: ("b", "c")},
        {("accuracy", *cells[0]): np.array([1.0, 0.0, 1.0]), ("accuracy", *cells[1]): np.array([1.0, 0.0])},
    )
    found = ablation_scores.figure(results, ablation_arms.TESTS["Tatoeba"], "d")
    assert found.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    again = ablation_scores.figure(results, ablation_arms.TESTS["Tatoeba"], "d")
    zero = found.above(again)
    assert (zero.value, zero.interval().low, zero.interval().high) == (0, 0, 0)
    with pytest.raises(DataError, match="other test data"):
        found.above(ablation_scores.figure(results, ablation_arms.TESTS["Tatoeba"], "other"))
