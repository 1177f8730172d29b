"""`metasearch resume FOLDER`: a run, a distillation, a study or a cell of one, whichever the folder holds."""

import json
import shutil

import pytest
from sentence_transformers import SentenceTransformer

from helpers import forks
from helpers.commands import metasearch
from helpers.configs import SHORT_RUN, SMALL, nested, train_one_step
from helpers.crossval import FLAGS, TUNED, ZERO, inline
from helpers.parallel import flags, save_assistant, write_corpus
from metasearch.config.library import load_recipe
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import RunFolderError
from metasearch.pipelines import factory
from metasearch.pipelines.folders import kind_of
from metasearch.pipelines.score import ScoreRun
from metasearch.pipelines.train import TrainRun
from metasearch.runs.folder import RunFolder


def contents(folder):
    """Return what a run came to: rows, events and weights."""
    lines = [folder / name for name in ("results.jsonl", "log.jsonl") if (folder / name).is_file()]
    read = {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in lines}
    weights = folder / "model/model.safetensors"
    return {**read, **({weights.name: weights.read_bytes()} if weights.is_file() else {})}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run, a score, a distillation and a study, all finished."""
    folder = tmp_path_factory.mktemp("kinds")
    TrainRun(SHORT_RUN, folder / "run").execute()
    ScoreRun(nested(ScoreConfig, task="demo-sts", encoder="tiny"), folder / "score").execute()
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    metasearch("distill", *flags(folder, "--stages=3", "--device=cpu", steps=2), "-o", folder / "distillation")
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        metasearch("crossval", *FLAGS, "--max-steps=2", "--keep-models", "-o", folder / "study")
    return folder


@pytest.mark.slow
def test_what_a_folder_holds_is_told_by_its_configuration_and_a_finished_one_prints_its_report(place):
    kinds = {"run": "train", "score": "score", "distillation": "distill", "study": "study"}
    for name, kind in {**kinds, f"study/cells/{TUNED}": "train", f"study/cells/{ZERO}": "score"}.items():
        folder = place / name
        assert kind_of(folder) == kind
        said = metasearch("resume", folder).stdout
        assert said == f"{(folder / 'report.md').read_text()}\n{'study' if kind == 'study' else 'run'}: {folder}\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "distillation"])
def test_what_has_only_its_configuration_comes_to_what_it_came_to(place, tmp_path, name):
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(place / name / "config.yaml", again)
    stages = [folder for folder in (place / name).glob("?-*") if folder.is_dir()]
    metasearch("resume", again)
    for before in (place / name, *stages):
        assert contents(again / before.relative_to(place / name)) == contents(before)


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on_to_the_bits_of_the_whole_one(place, tmp_path):
    train_one_step(SHORT_RUN, tmp_path / "run")
    assert not RunFolder(tmp_path / "run").finished
    assert SentenceTransformer(str(tmp_path / "run" / "model"), device="cpu").encode("x").shape == (128,)
    shown = json.loads(metasearch("resume", tmp_path / "run", "--json").stdout)
    assert shown["run"] == str(tmp_path / "run")
    assert shown["results"] == RunFolder(place / "run").results()
    assert contents(tmp_path / "run") == contents(place / "run")


@pytest.mark.slow
def test_a_folder_that_holds_nothing_to_go_on_with_says_what_is_missing_and_what_is_near(place, tmp_path):
    said = metasearch("resume", tmp_path, code=5).stderr
    assert f"{tmp_path} is no run, distillation or study: it has neither config.yaml nor study.yaml" in said
    assert f"Did you mean '{place / 'study'}'?" in metasearch("resume", place / "stdy", code=5).stderr
    assert f"Did you mean {place / 'study'}?" in metasearch("resume", place / "study/cells", code=5).stderr
    assert f"Did you mean {place / 'run'}?" in metasearch("resume", place / "run/model", code=5).stderr
    said = metasearch("resume", place, code=5).stderr
    assert all(str(place / name) in said for name in ("run", "score", "distillation", "study"))


@pytest.mark.parametrize("config", [SHORT_RUN, nested(ScoreConfig, task="demo-sts", encoder="tiny")])
def test_changed_data_and_code_that_is_not_trusted_again_are_refused(tmp_path, config):
    RunFolder.create(tmp_path / "other", config, "other")
    said = metasearch("resume", tmp_path / "other", code=3).stderr
    assert "the data has changed since the run began (fingerprint other" in said
    encoder = config.encoder.model_copy(update={"trust_remote_code": True})
    trusting = config.model_copy(update={"encoder": encoder})
    RunFolder.create(tmp_path / "run", trusting, load_benchmark("demo-sts").data.fingerprint)
    said = metasearch("resume", tmp_path / "run", code=2).stderr
    assert "the run was created with --trust-remote-code; pass it again to resume" in said
    assert metasearch("resume", tmp_path / "run", "--trust-remote-code").stdout


@pytest.mark.slow
def test_a_cell_stops_with_a_checkpoint_when_its_runner_is_gone_and_its_folder_is_free_again(tmp_path):
    """The runner holds the other end of its standard input; nothing else tells it of a `kill -9`."""
    slow = load_recipe("maml-tiny", [*SMALL, "budget.meta_train=4000", "budget.eval_every=0"])
    config = SHORT_RUN.model_copy(update={"recipe": factory.resolved(slow), "max_steps": None})
    files = RunFolder.create(tmp_path / "run", config, load_benchmark("demo-sts").data.fingerprint)
    cell = forks.Fork(forks.metasearch("resume", files.path, "--until-eof"))
    cell.wait_until(lambda: files.events()[1:])
    with pytest.raises(RunFolderError, match="another process is at work"), files.held():
        pass
    cell.close_stdin()
    code, _, said = cell.finished()
    assert code == 143, said  # it ends itself as SIGTERM would
    assert "model and checkpoint are saved. Continue with: metasearch resume" in said
    assert (files.path / "checkpoint").is_dir()
    with files.held():
        pass
