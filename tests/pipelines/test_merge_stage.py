"""The stage `merge` of a run: α by the dev score, what is kept and said of it, and a run that was stopped."""

import json

import pytest
import torch

from helpers.configs import nested, through
from helpers.training import Killed, kill
from metasearch.compress.average import average
from metasearch.config.library import load_recipe
from metasearch.config.run import RunConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.open import open_checkpoint
from metasearch.pipelines import factory
from metasearch.pipelines.resume import open_run
from metasearch.pipelines.train import TrainRun
from metasearch.runs.callbacks import Callback
from metasearch.runs.rows import MEAN, read_rows

SMALL = (
    *("budget.meta_train=8", "budget.meta_valid=0", "budget.eval_every=1", "episodes.k=2", "episodes.q=2"),
    "outer.lr=1e-2",
)


def run_of(*changes):
    recipe = load_recipe("fine-tune-tiny", [*SMALL, *changes])
    return nested(
        RunConfig, task="demo-sts", mode="mono-bi", encoder="tiny", device="cpu", max_steps=2, recipe=recipe, seed=0
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same training without the stage and with it."""
    folder = tmp_path_factory.mktemp("runs")
    TrainRun(run_of(), folder / "plain").execute()
    TrainRun(run_of("merge=[0.25,0.5,1]"), folder / "merged").execute()
    return folder


def means(folder):
    """Return (learner, split) → the mean Pearson correlation of a run."""
    rows = read_rows(folder / "results.jsonl")
    return {
        (row["learner"], row["split"]): row["value"]
        for row in rows
        if (row["language"], row["measure"]) == (MEAN, "pearson")
    }


@pytest.mark.slow
def test_one_run_has_scores_with_and_without_the_stage(runs):
    plain, merged = means(runs / "plain"), means(runs / "merged")
    assert {learner for learner, _ in merged} == {"zero-shot", "fine-tune", "fine-tune+merge"}
    assert merged["fine-tune", "test"] == plain["fine-tune", "test"]


@pytest.mark.slow
def test_the_alpha_with_the_best_dev_score_is_kept_and_the_model_has_its_weights(runs):
    told = json.loads((runs / "merged/facts.json").read_text(encoding="utf-8"))["merge"]
    assert set(told["dev"]) == {"0.25", "0.5", "1"}
    assert (
        told["dev"][f"{told['alpha']:g}"]
        == max(told["dev"].values())
        == means(runs / "merged")["fine-tune+merge", "dev"]
    )
    before = factory.load_encoder("tiny", load_benchmark("demo-sts").task.max_length, device="cpu").model.state_dict()
    after = open_checkpoint(str(runs / "plain/model")).model.state_dict()
    expected = average([(1 - told["alpha"], before), (told["alpha"], after)])
    model = open_checkpoint(str(runs / "merged/model")).model.state_dict()
    assert all(torch.equal(weight, expected[name]) for name, weight in model.items())


class Stop(Callback):
    """Dies in the last step."""

    def on_step(self, step, total, phase, terms):
        """Die."""
        if step == 2:
            kill()


@pytest.mark.slow
def test_a_run_that_was_stopped_merges_with_the_weights_before_its_first_step(runs, tmp_path):
    with pytest.raises(Killed):
        TrainRun(run_of("merge=[0.25,0.5,1]"), tmp_path / "run").execute(through(Stop()))
    open_run(tmp_path / "run").execute()
    assert means(tmp_path / "run") == means(runs / "merged")
    made, whole = (open_checkpoint(str(place / "model")).fingerprint for place in (tmp_path / "run", runs / "merged"))
    assert made == whole
