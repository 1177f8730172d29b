"""Loss terms and dev scores of a run go to the trackers that were asked for, beside the progress bar."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from metasearch.config import extras
from metasearch.errors import ConfigError
from metasearch.runs.callbacks import TRACKERS, Callback, add_trackers

SENT = [(0, {"dev": 0.25}), (1, {"meta-train/loss": 2.0, "meta-train/triplet": 1.5}), (1, {"dev": 0.5})]
"""Step and values of the three calls of `report`."""


class Kept(Callback):
    def __init__(self):
        self.calls = []

    def on_step(self, *values):
        self.calls.append(("step", *values))

    def on_dev(self, *values):
        self.calls.append(("dev", *values))


def report(names, folder):
    """Return the calls of the callback that stands beside the trackers."""
    kept, stages = Kept(), []

    @contextmanager
    def open_callback(stage):
        stages.append(stage)
        yield kept

    with add_trackers(open_callback, names, folder)("maml align") as callback:
        callback.on_dev(0, 0.25, False)
        callback.on_step(1, 2, "meta-train", {"loss": 2.0, "triplet": 1.5})
        callback.on_dev(1, 0.5, True)
    assert stages == ["maml align"]
    return kept.calls


@pytest.fixture
def package(monkeypatch):
    """Return a function that puts a module with the functions of a tracker in the place of its package."""

    def put(name, **functions):
        module = SimpleNamespace(**functions)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


def test_every_name_of_the_option_is_a_tracker():
    assert tuple(TRACKERS) == extras.TRACKERS


def test_each_value_arrives_once_with_its_step_and_the_other_callback_hears_the_same(package, tmp_path):
    sent, ended = [], []
    package(
        "trackio",
        init=lambda project, name: (project, name),
        log=lambda values, step: sent.append((step, values)),
        finish=lambda: ended.append(True),
    )
    calls = report(["trackio", "trackio"], tmp_path / "run")
    assert (sent, ended) == (SENT, [True])
    terms = {"loss": 2.0, "triplet": 1.5}
    assert calls == [("dev", 0, 0.25, False), ("step", 1, 2, "meta-train", terms), ("dev", 1, 0.5, True)]


def test_without_a_value_no_tracker_is_opened(package, tmp_path):
    package("mlflow")  # which has no function to call
    with add_trackers(lambda stage: contextmanager(lambda: iter([Kept()]))(), ["mlflow"], tmp_path)("maml"):
        pass


def test_a_tracker_that_fails_ends_the_run_with_one_line(package, tmp_path):
    def refuse(**_):
        raise OSError("no login\nrun wandb login")

    package("wandb", init=refuse)
    with pytest.raises(ConfigError, match=r"^--track: wandb failed: no login"):
        report(["wandb"], tmp_path)


def test_a_package_that_is_not_installed_is_named_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "trackio", None)
    line = r"pip install 'metasearch-encoders\[track\]'"
    with pytest.raises(ConfigError, match=f"^--track trackio needs the package trackio: {line}$"):
        add_trackers(lambda stage: None, ["trackio"], tmp_path)


def test_tensorboard_has_the_values(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    report(["tensorboard"], tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard" / "run-maml-align")).Reload()
    assert [(each.step, each.value) for each in events.Scalars("dev")] == [(0, 0.25), (1, 0.5)]
    assert [(each.step, each.value) for each in events.Scalars("meta-train/loss")] == [(1, 2.0)]


def test_wandb_works_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "run").mkdir()
    report(["wandb"], tmp_path / "run")
    assert len(list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))) == 1


def test_mlflow_writes_to_a_local_store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    report(["mlflow"], tmp_path / "run")
    (found,) = mlflow.search_runs(experiment_names=["metasearch"], output_format="list")
    assert found.data.metrics == {"dev": 0.5, "meta-train/loss": 2.0, "meta-train/triplet": 1.5}


def test_trackio_writes_to_its_own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    report(["trackio"], tmp_path / "run")
    assert list((tmp_path / "trackio").rglob("*.db"))
