"""The stage `neutralise` of a run: before or after training, fitted on the train part; and stopped and resumed."""

import json
from itertools import combinations

import numpy as np
import pytest
import torch

from helpers.configs import nested, through
from helpers.training import Killed, Recorder, kill
from metasearch.config.library import load_recipe
from metasearch.config.projection import ProjectionSettings
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.folders import open_run
from metasearch.pipelines.neutral import neutralise, train_texts
from metasearch.pipelines.train import TrainRun
from metasearch.runs.rows import MEAN, read_rows

SMALL = [
    *("budget.meta_train=8", "budget.meta_valid=0", "budget.meta_batch=1", "budget.eval_every=1"),
    *("episodes.k=2", "episodes.q=2", "options.inner_steps=1"),
]
FEW = ProjectionSettings(texts=40)

pytestmark = pytest.mark.slow  # three runs are made


def run_of(*changes, **keys):
    recipe = load_recipe("maml-tiny", [*SMALL, *changes])
    usual = {"task": "demo-sts", "mode": "mono-bi", "encoder": "tiny", "device": "cpu", "max_steps": 2}
    return nested(RunConfig, **{**usual, "recipe": recipe, **keys})


def stage(when):
    return f"neutralise.when={when}", f"neutralise.texts={FEW.texts}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same training without the stage, with it before, and with it after, each finished."""
    folder = tmp_path_factory.mktemp("runs")
    for name, changes in (("plain", ()), ("before", stage("before")), ("after", stage("after"))):
        TrainRun(run_of(*changes), folder / name).execute()
    return folder


def rows_of(folder):
    return read_rows(folder / "results.jsonl")


def mean(folder, learner, split="test"):
    rows = [row for row in rows_of(folder) if (row["language"], row["measure"]) == (MEAN, "pearson")]
    named = {(row["learner"], row["split"]): row["value"] for row in rows}
    return named[learner, split]


def apart(encoder, benchmark):
    """Return how far the means of languages are from each other before the last normalisation, at most."""
    means = []
    for tagged in train_texts(benchmark, FEW).values():
        means.append(encoder.encode([text for _, text in tagged], "text", "pooled").astype(np.float64).mean(0))
    return max(np.linalg.norm(one - other) for one, other in combinations(means, 2))


def test_after_training_the_map_of_the_trained_encoder_is_at_the_end_of_the_model(runs):
    benchmark = load_benchmark("demo-sts")
    encoder = open_checkpoint(str(runs / "after/model"), benchmark.task.max_length)
    assert encoder.neutral
    found = evaluate(encoder, benchmark.split.test, benchmark.measures).mean("pearson")
    # The model's map is in float32, and the scores are computed in float64.
    assert found == pytest.approx(mean(runs / "after", "maml+neutral"), abs=1e-6)
    assert apart(encoder, benchmark) < 1e-5
    del encoder.model[-2:]  # the map and what normalises after it
    assert apart(encoder, benchmark) > 0.01


def test_with_the_map_after_training_one_run_has_scores_with_and_without_it(runs):
    learners = dict.fromkeys(row["learner"] for row in rows_of(runs / "after"))
    assert list(learners) == ["zero-shot", "maml", "maml+neutral"]
    for split in ("dev", "test"):
        assert mean(runs / "after", "zero-shot", split) == mean(runs / "plain", "zero-shot", split)
        assert mean(runs / "after", "maml+neutral", split) != mean(runs / "after", "maml", split)
    report = (runs / "after/report.md").read_text(encoding="utf-8")
    assert f"→ {100 * mean(runs / 'after', 'maml+neutral'):.2f}" in report.splitlines()[3]
    assert "| after training  " in report


def test_the_dev_score_is_that_of_a_map_fitted_anew_at_each_step(runs):
    events = [json.loads(line) for line in (runs / "after/log.jsonl").read_text().splitlines()]
    dev = {event["step"]: event["dev"] for event in events if "dev" in event}
    best = max(range(1, 3), key=lambda step: dev[step])
    assert dev[best] == pytest.approx(mean(runs / "after", "maml+neutral", "dev"), abs=1e-6)
    # Step 0 is the base encoder with a projection, and so not zero-shot.
    assert dev[0] != pytest.approx(mean(runs / "after", "zero-shot", "dev"), abs=1e-6)


def test_before_training_zero_shot_is_the_encoder_as_it_was_and_the_map_is_trained_along(runs):
    assert list(dict.fromkeys(row["learner"] for row in rows_of(runs / "before"))) == ["zero-shot", "maml"]
    assert mean(runs / "before", "zero-shot") == mean(runs / "plain", "zero-shot")
    benchmark = load_benchmark("demo-sts")
    trained = open_checkpoint(str(runs / "before/model"))
    fresh = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    neutralise(fresh, benchmark, FEW)
    weights = [encoder.model[-2].linear.weight.detach() for encoder in (fresh, trained)]
    assert not torch.equal(*weights)
    assert (weights[0] - weights[1]).abs().max() < 0.02


def test_a_study_has_an_arm_with_and_one_without_the_map_and_names_what_differs(runs):
    study = read_study([runs / name for name in ("plain", "before", "after")])
    assert sorted(arm.label for arm in study.arms) == [
        "maml+neutral",
        "maml, neutralise.texts=40, neutralise.when=after",
        "maml, neutralise.texts=40, neutralise.when=before",
        "maml, neutralise.texts=none, neutralise.when=none",
        "zero-shot",
    ]


def test_a_run_that_died_goes_on_to_the_bits_of_one_that_did_not(runs, tmp_path):
    when = "after"
    with pytest.raises(Killed):
        TrainRun(run_of(*stage(when)), tmp_path / "run").execute(through(Recorder(2, kill)))
    assert (tmp_path / "run/checkpoint").is_dir()
    open_run(tmp_path / "run").execute()
    for name in ("model/model.safetensors", "model/3_Dense/model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (runs / when / name).read_bytes()
    assert rows_of(tmp_path / "run") == rows_of(runs / when)
