"""`evaluate --shots`: labelled questions are never asked, more shots contain fewer, and weights are put back."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from helpers.training import SMALL, small
from metasearch.algorithms.sets import prepare
from metasearch.cli import main
from metasearch.config.library import load_recipe
from metasearch.config.run import EvaluateConfig, ShotSettings
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError, DataError, NonFiniteError
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines import shots as pipeline
from metasearch.pipelines.frozen import with_adapter
from metasearch.pipelines.shots import Adaptation, _asked, _draw, _support, score_shots

RECIPE = load_recipe("maml-adapter", ["episodes.n_neg=2", "options.inner_lr=0.5", "options.inner_steps=2"])
DATA = small("trans").split.dev
FEW = ShotSettings(counts=(1, 3), draws=2)


def config(encoder="tiny", task="demo", **shots):
    given = {"counts": (1, 3), "draws": 2, "recipe": "maml-adapter", **shots}
    tree = {"data": {"task": task}, "encoder": {"name": str(encoder)}, "split": "dev", "shots": given}
    return EvaluateConfig.model_validate({**tree, "compute": {"device": "cpu"}})


def encoder():
    return with_adapter(load_encoder("tiny", small("trans").task.max_length, device="cpu"), RECIPE.adapter, [DATA])


def test_more_shots_begin_with_the_triplets_of_fewer_and_a_draw_is_the_same_every_time():
    first, other = _draw(DATA, FEW, 0), _draw(DATA, FEW, 1)
    assert [q.id for q in first] == [q.id for q in _draw(DATA, FEW, 0)] != [q.id for q in other]
    one, three = (_support(DATA, first[:count], RECIPE, 0, 0).examples for count in (1, 3))
    assert [triplet.ids for triplet in three[: len(one)]] == [triplet.ids for triplet in one]
    languages = len(DATA.answers[first[0].id])
    assert len(one) == 2 * languages
    assert {t.question for t in three} == set(first)
    assert all(t.negative.text not in t.answers and t.positive.text in t.answers for t in three)
    assert {q.language for q in _draw(DATA, FEW.model_copy(update={"shot_languages": ("de",)}), 0)} == {"de"}


def test_negatives_do_not_depend_on_the_labels_of_other_questions():
    questions = _draw(DATA, FEW, 0)
    ids = {question.id for question in questions}
    blind = tuple(replace(c, answers=tuple(ids.intersection(c.answers))) for c in DATA.candidates)
    given = (_support(data, questions, RECIPE, 0, 0) for data in (DATA, replace(DATA, candidates=blind)))
    first, second = ([[each.id for each in (t.positive, t.negative)] for t in one.examples] for one in given)
    assert first == second


def test_questions_with_labels_are_never_scored_in_any_language():
    scores = evaluate(encoder(), DATA, small("trans").measures)
    labelled = [{question.id for question in _draw(DATA, FEW, number)} for number in range(2)]
    asked = _asked("map@20", {0: [scores, scores]}, labelled)
    assert set(asked) == set(DATA.questions_by_language)
    for language, own in asked.items():
        questions = [question.id for question in DATA.questions_by_language[language]]
        for ids, draw in zip(labelled, own, strict=True):
            assert len(draw.articles) == len(draw.scores[0]) == len(set(questions) - ids) == len(questions) - 3


def test_questions_without_a_value_of_a_measure_are_left_out():
    scores = evaluate(encoder(), DATA, small("trans").measures)
    for key, values in scores.questions.columns.items():
        values[0] = np.nan
        asked = _asked(key[0], {0: [scores]}, [set()])[key[2]]
        assert asked[0].scores[0].tolist() == values[1:].tolist()
        assert len(asked[0].articles) == len(values) - 1


def test_an_adaptation_is_gradient_descent_by_hand_and_the_weights_are_put_back():
    adapted = encoder()
    support = _support(DATA, _draw(DATA, FEW, 0), RECIPE, 0, 0)
    adaptation = Adaptation(adapted, RECIPE, FEW, None)
    weight, learner = torch.zeros_like(adapted.adapter.delta, requires_grad=True), adaptation._learner

    def vectors(tower):
        return torch.func.functional_call(adapted.embedder, {"adapter.delta": weight}, (tower,))

    for _ in range(2):
        (slope,) = torch.autograd.grad(learner.loss(vectors, prepare(adapted, support)), [weight])
        weight = (weight - 0.5 * slope).detach().requires_grad_()
    with adaptation.to(support):
        torch.testing.assert_close(adapted.adapter.delta.detach(), weight.detach(), rtol=1e-4, atol=1e-7)
        assert adapted.adapter.delta.abs().max() > 1e-3
    assert adapted.adapter.delta.count_nonzero() == 0


@pytest.mark.slow
def test_rows_have_the_facts_of_other_scores_and_are_the_same_every_time():
    benchmark = small("trans")
    rows = score_shots(config(rate=0.5), benchmark)
    assert rows == score_shots(config(rate=0.5), benchmark)
    assert {row["shots"] for row in rows} == {0, 1, 3}
    known = {(row["measure"], row["language"]) for row in rows if row["shots"] == 3}
    assert known == {(str(m), tag) for m in benchmark.measures for tag in (*DATA.questions_by_language, "mean")}
    (first, *_) = rows
    assert (first["split"], first["pool"], first["adapt_lr"], first["draws"]) == ("dev", "multilingual", 0.5, 2)
    assert any(row["gain"] for row in rows if row["shots"] == 3)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["meta-sgd-adapter", "maml-tiny", "maml-adapter"])
def test_the_model_of_a_run_is_adapted_by_its_own_recipe_and_shown_in_a_report(tmp_path, recipe):
    """Meta-SGD with its learned rates; MAML with all weights of the encoder, and with a low-rank adapter."""
    run, report = tmp_path / "run", tmp_path / "report"
    form = ["adapter=low-rank"] if recipe == "maml-adapter" else []
    changes = [word for each in [*SMALL, *form, "episodes.n_neg=1"] for word in ("--set", each)]
    line = ["--task", "demo", "--mode", "trans", "--encoder", "tiny", "--recipe", recipe, *changes, "-o", str(run)]
    done = CliRunner().invoke(main, ["train", *line])
    assert done.exit_code == 0, done.output
    assert (run / "learner.safetensors").is_file() == (recipe == "meta-sgd-adapter")
    asked = ["--task", "demo", "--encoder", str(run / "model"), "--shots", "0,2", "--draws", "1", "--json"]
    done = CliRunner().invoke(main, ["evaluate", *asked, "-o", str(run / "shots.jsonl")])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["report", str(run), "-o", str(report)])
    assert done.exit_code == 0, done.output
    (table,) = [one for one in json.loads((report / "tables.json").read_text()) if one["key"] == "shots-scores"]
    assert [line["heads"][1] for line in table["lines"]] == ["0", "2"]


@pytest.mark.parametrize(
    ("shots", "said"),
    [
        ({"recipe": None}, "no model of a training, which would say how to adapt; name a recipe"),
        ({"recipe": "fine-tune-adapter"}, "recipe 'fine-tune-adapter' has no inner rate; give one"),
        ({"shot_languages": ("xx",)}, "shot-language"),
        ({"task": "demo-sts"}, "--shots is for retrieval; task 'demo-sts' is a similarity task"),
    ],
)
def test_what_cannot_be_adapted_is_refused(shots, said):
    chosen = config(**shots)
    benchmark = load_benchmark("demo-sts") if "task" in shots else small("trans")
    with pytest.raises(ConfigError, match=said):
        score_shots(chosen, benchmark)


def test_a_rate_that_is_too_high_is_said_in_one_line(caplog):
    score_shots(config(rate=1e3, counts=(1,)), small("trans"))
    (line,) = [each.getMessage() for each in caplog.records if "collapse" in each.msg]
    assert re.match(r"tiny on dev of demo, shots 1, draw 0: adapted questions collapse \(.*smaller --adapt-lr", line)
    said = r"shots 1, draw 0: adapted questions: vector 0 of \d+ is not finite.*; take a smaller --adapt-lr"
    with pytest.raises(NonFiniteError, match=said):
        score_shots(config(rate=1e30, counts=(1,)), small("trans"))


def test_a_number_of_shots_that_is_named_twice_is_refused():
    done = CliRunner().invoke(main, ["evaluate", "--task", "demo", "--shots", "0,4,4"])
    assert done.exit_code == 2
    assert "--shots 0,4,4: 4 is named twice" in done.output


def test_more_shots_than_questions_are_refused_before_an_encoder_is_loaded(monkeypatch):
    monkeypatch.setattr(pipeline, "load_encoder", None)
    with pytest.raises(DataError, match="--shots 900: there are"):
        score_shots(config(counts=(900,)), small("trans"))


def test_options_of_shots_alone_have_no_effect():
    done = CliRunner().invoke(main, ["evaluate", "--task", "demo", "--adapt-steps", "3"])
    assert done.exit_code != 0
    assert "--adapt-steps: nothing is adapted; add --shots" in done.output
