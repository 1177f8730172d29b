"""Another encoder under the same name: a run holds to the weights that it began with, and tables to one encoder."""

import shutil

import pytest

from helpers.configs import SMALL, nested
from helpers.crossval import inline
from helpers.crossval import run as crossval
from metasearch.config.library import load_recipe
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError, EncoderError
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.folders import open_run
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.train import TrainRun
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import read_rows

pytestmark = pytest.mark.slow  # a model is trained


@pytest.fixture
def encoder(tmp_path):
    return replaced(tmp_path / "encoder", seed=1)


def replaced(folder, seed):
    """Write the tiny encoder of a seed in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    load_encoder("tiny", seed=seed, device="cpu").save(folder)
    return folder


def fingerprint(folder):
    return load_encoder(str(folder), identify=True, device="cpu").origin


def scored(encoder, folder, fold=0):
    ScoreRun(nested(ScoreConfig, task="demo-sts", encoder=str(encoder), fold=fold, device="cpu"), folder).execute()
    return folder


def test_rows_have_the_fingerprint_of_the_weights_and_a_table_of_two_encoders_of_one_name_is_refused(encoder, tmp_path):
    """Fold 0 with one checkpoint, and fold 1 with another that took its place."""
    before = fingerprint(encoder)
    first = scored(encoder, tmp_path / "first", fold=0)
    assert RunFolder(first).stored(ScoreConfig).weights == {"encoder": before}
    assert {(row["weights"], "seeded" in row) for row in read_rows(first / "results.jsonl")} == {(before, False)}
    second = scored(replaced(encoder, seed=2), tmp_path / "second", fold=1)
    with pytest.raises(ConfigError, match="was not the same encoder in both") as caught:
        read_study([first, second])
    assert f"(fingerprints {before} and {fingerprint(encoder)})" in str(caught.value)


def test_a_run_does_not_go_on_with_other_weights(encoder, tmp_path):
    config = nested(
        RunConfig,
        task="demo-sts",
        mode="mono-bi",
        encoder=str(encoder),
        recipe=load_recipe("maml-tiny", SMALL),
        max_steps=1,
        device="cpu",
    )
    TrainRun(config, tmp_path / "run").execute()
    (tmp_path / "run" / "report.md").unlink()
    replaced(encoder, seed=2)
    with pytest.raises(EncoderError, match="different weights, vocabulary or prompts since the run was created"):
        open_run(tmp_path / "run").execute()
    replaced(encoder, seed=1)
    assert open_run(tmp_path / "run").execute().rows


def test_a_study_holds_to_the_encoder_that_it_began_with(encoder, tmp_path, monkeypatch):
    """The folder is overwritten between fold 0 and fold 1."""
    inline(monkeypatch)
    flags = ["--task=demo-sts", f"--encoder={encoder}", "--learner=zero-shot", "--seeds=0", "--device=cpu"]
    crossval(*flags, "--folds=0,", "-o", tmp_path / "study")
    before = fingerprint(encoder)
    assert StudyFolder(tmp_path / "study").stored().weights == {"encoder": before}
    replaced(encoder, seed=2)
    said = crossval(*flags, "--folds=0,1", "-o", tmp_path / "study", code=7).output
    assert f"different weights, vocabulary or prompts since the run was created (fingerprint {before}, now" in said
    replaced(encoder, seed=1)
    crossval(*flags, "--folds=0,1", "-o", tmp_path / "study")
