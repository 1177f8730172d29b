"""A run keeps the task and the mode that it began with: their files may change, and it comes to the same bits."""

import json
import re
import shutil

import pytest

from helpers.commands import metasearch
from helpers.configs import SMALL, train_one_step
from helpers.crossval import inline
from helpers.declarations import write_variant
from metasearch.cli.train import configure
from metasearch.config import yaml
from metasearch.config.library import shipped
from metasearch.pipelines.train import TrainRun
from metasearch.runs.folder import RunFolder

pytestmark = pytest.mark.slow  # a model is trained

EDITS = {
    "patterns of the mode": ("modes/path.yaml", "mono -> bi", "mono -> multi"),
    "folds": ("own.yaml", "k: 5", "k: 3"),
    "nothing is left of the task": ("own.yaml", "(?s).*", ""),
}
CHANGED = "it continues as it began"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A user's task and mode, a run of them that was stopped, and one that was not."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "mine/modes").mkdir(parents=True)
    write_variant(folder / "mine", "demo-sts", "own")
    mode = (shipped() / "modes/mono-bi.yaml").read_text(encoding="utf-8").replace("mode: mono-bi", "mode: path")
    (folder / "mine/modes/path.yaml").write_text(mode, encoding="utf-8")
    config = configure(
        mode="path", task="own", encoder="tiny", learner="maml", recipe=None, assignments=SMALL,
        include=(str(folder / "mine"),), data=None, device="cpu", max_steps=2, fold=1,
    )  # fmt: skip
    TrainRun(config, folder / "whole").execute()
    train_one_step(config, folder / "stopped")
    return folder


@pytest.fixture
def stopped(place, tmp_path):
    """A copy of the stopped run; the user's files are as they were when the test is over."""
    shutil.copytree(place / "mine", tmp_path / "mine")
    yield shutil.copytree(place / "stopped", tmp_path / "run")
    shutil.rmtree(place / "mine")
    shutil.copytree(tmp_path / "mine", place / "mine")


def edit(place, name):
    """Change a file of the user's."""
    file, old, new = EDITS[name]
    text = (place / "mine" / file).read_text(encoding="utf-8")
    changed = re.sub(old, new, text, count=0 if file.startswith("modes") else 1)
    assert changed != text
    (place / "mine" / file).write_text(changed, encoding="utf-8")


def outcome(folder):
    """Return the scores and weights of a run."""
    return RunFolder(folder).results(), (folder / "model/model.safetensors").read_bytes()


@pytest.mark.parametrize("name", EDITS)
def test_a_run_that_was_stopped_goes_on_as_it_began_when_its_task_or_mode_is_edited(place, stopped, name):
    edit(place, name)
    said = metasearch("resume", stopped).stderr
    assert outcome(stopped) == outcome(place / "whole")
    assert [line for line in said.splitlines() if (CHANGED in line and "own" in line) or "path" in line]


def test_a_run_that_names_its_task_and_mode_is_refused(stopped):
    tree = yaml.tree(stopped / "config.yaml")
    tree["config"]["mode"] = "path"
    (stopped / "config.yaml").write_text(yaml.dump(tree), encoding="utf-8")
    said = metasearch("resume", stopped, code=2).stderr
    assert "it names its task and mode, as early versions wrote it; repeat the command" in said


def test_a_study_says_what_has_changed_and_neither_mixes_folds_nor_modes(place, stopped, tmp_path, monkeypatch):
    inline(monkeypatch)
    flags = ["--task=own", f"--include={place / 'mine'}", "--encoder=tiny", "--mode=path", "--learner=maml"]
    flags += ["--folds=0,", "--seeds=0", "--max-steps=1", "--device=cpu", "--set=budget.meta_valid=0"]
    begun = metasearch("crossval", *flags, "--threads=1", "-o", tmp_path / "study", "--json")
    edit(place, "folds")
    said = metasearch("crossval", *flags, "-o", tmp_path / "study", code=2).stderr
    assert "the study has task.folds.k '5', not '3'" in said
    resumed = metasearch("resume", tmp_path / "study", "--json")
    assert CHANGED in resumed.stderr
    assert json.loads(resumed.stdout) == json.loads(begun.stdout)
