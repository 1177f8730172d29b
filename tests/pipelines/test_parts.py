"""Which part of the data a score is from: the dev score from dev, never from test, and each row from its own part."""

import pytest

from helpers.configs import nested
from metasearch.config.library import load_recipe
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.data.folds import hold_out
from metasearch.encoders.load import load_encoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines import factory
from metasearch.pipelines.train import TrainRun
from metasearch.runs.folder import RunFolder

pytestmark = pytest.mark.slow  # a model is trained

SMALL = ["budget.meta_train=4", "budget.meta_valid=4", "budget.eval_every=1", "episodes.k=2", "episodes.q=2"]
TASK, MODE, MONITOR = "demo", "trans", "map@20"


def mean(encoder, data, benchmark):
    return evaluate(encoder, data, benchmark.measures).mean(MONITOR)


def test_the_dev_score_is_that_of_the_part_of_dev_that_gives_it():
    holdout = 0.5
    benchmark = load_benchmark(TASK, MODE)
    recipe = load_recipe("maml-tiny", [*SMALL, f"budget.dev_holdout={holdout}"])
    encoder = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    _, scored = hold_out(benchmark.split.dev, holdout)
    others = [benchmark.split.test, benchmark.split.train, benchmark.split.dev]
    before = mean(encoder, scored, benchmark)
    assert all(mean(encoder, other, benchmark) != before for other in others)
    outcome = factory.fit(factory.make_learner(recipe, encoder), benchmark, recipe, max_steps=2)
    assert outcome.baseline == before
    assert outcome.best_score == mean(encoder, scored, benchmark)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained run, with its dev and its test data."""
    folder = tmp_path_factory.mktemp("parts") / "run"
    recipe = load_recipe("maml-tiny", SMALL)
    TrainRun(
        nested(RunConfig, task=TASK, mode=MODE, encoder="tiny", recipe=recipe, max_steps=2, device="cpu"), folder
    ).execute()
    return RunFolder(folder)


@pytest.mark.parametrize(("learner", "model", "part"), [("zero-shot", None, "dev"), ("maml", "model", "test")])
def test_each_row_is_a_score_on_the_part_that_it_names(trained, learner, model, part):
    benchmark = load_benchmark(TASK, MODE)
    name = str(trained.path / model) if model else "tiny"
    encoder = load_encoder(name, benchmark.task.max_length, device="cpu")
    scores = evaluate(encoder, getattr(benchmark.split, part), benchmark.measures)
    wanted = {(row["measure"], row["language"]): row["value"] for row in scores.rows()}
    rows = [row for row in trained.results() if (row["learner"], row["split"]) == (learner, part)]
    found = {(r["measure"], r["language"]): r["value"] for r in rows if r["pool"] == "multilingual"}
    assert found == pytest.approx(wanted, abs=1e-6)
    other = benchmark.split.test if part == "dev" else benchmark.split.dev
    assert found[MONITOR, "mean"] != pytest.approx(mean(encoder, other, benchmark), abs=1e-4)
