"""Loss terms and dev scores of a run go to the trackers that were asked for, beside the progress bar."""

import re
import sys
import threading
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from metasearch.cli import _options
from metasearch.errors import ConfigError, NonFiniteError, Terminated
from metasearch.runs import trackers
from metasearch.runs.callbacks import Callback
from metasearch.runs.trackers import TRACKERS, add_trackers

SENT = [(0, {"dev": 0.25}), (1, {"meta-train/loss": 2.0, "meta-train/triplet": 1.5}), (1, {"dev": 0.5})]
"""Step and values of the three calls of `report`."""


class Kept(Callback):
    def __init__(self):
        self.calls = []

    def on_step(self, *values):
        self.calls.append(("step", *values))

    def on_dev(self, *values):
        self.calls.append(("dev", *values))


def report(names, folder, stages=("maml align",)):
    """Return the calls of the callback beside the trackers, in the last stage; without stages, only one is opened."""
    opened = []

    @contextmanager
    def open_callback(stage):
        opened.append(stage)
        kept.append(Kept())
        yield kept[-1]

    kept, open_stage = [], add_trackers(open_callback, names, folder)
    for stage in stages:
        with open_stage(stage) as callback:
            callback.on_dev(0, 0.25, False)
            callback.on_step(1, 2, "meta-train", {"loss": 2.0, "triplet": 1.5})
            callback.on_dev(1, 0.5, True)
    if not stages:
        with open_stage("maml"):
            raise AssertionError("the work began")
    assert opened == list(stages)
    return kept[-1].calls


@pytest.fixture
def package(monkeypatch):
    """Return a function that puts a module with the functions of a tracker in the place of its package."""

    def put(name, **functions):
        module = SimpleNamespace(**functions)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


def test_every_name_of_the_option_is_a_tracker():
    assert tuple(TRACKERS) == _options.TRACKERS


def test_each_value_arrives_once_with_its_step_and_the_other_callback_hears_the_same(package, tmp_path):
    sent, ended = [], []
    put_mlflow(
        package, log_metrics=lambda values, step: sent.append((step, values)), end_run=lambda: ended.append(True)
    )
    calls = report(["mlflow", "mlflow"], tmp_path / "run")
    assert (sent, ended) == (SENT, [True])
    terms = {"loss": 2.0, "triplet": 1.5}
    assert calls == [("dev", 0, 0.25, False), ("step", 1, 2, "meta-train", terms), ("dev", 1, 0.5, True)]


def test_work_that_raises_an_error_or_is_interrupted_is_a_failed_run(package, tmp_path):
    ended, nothing = [], lambda *_, **__: None
    put_mlflow(package, end_run=lambda **how: ended.append(how))
    run = SimpleNamespace(log=nothing, finish=lambda **how: ended.append(how))
    package("wandb", init=lambda **_: run)
    opened = add_trackers(lambda stage: nullcontext(Kept()), ["mlflow", "wandb"], tmp_path)
    for error in (NonFiniteError("the loss is not finite"), Terminated("stopped"), KeyboardInterrupt()):
        with pytest.raises(type(error)), opened("maml"):
            raise error
    assert ended == [{"exit_code": 1}, {"status": "FAILED"}] * 3


def put_mlflow(package, **functions):
    """Put a module in the place of MLflow whose functions do nothing, unless they are given."""
    names = ("set_experiment", "start_run", "log_metrics", "end_run")
    return package("mlflow", **{**dict.fromkeys(names, lambda *_, **__: None), **functions})


def fails(error):
    def call(*values, **more):
        raise error

    return call


def never(*values, **more):
    threading.Event().wait()


ERRORS = [OSError("no login\nrun wandb login"), RuntimeError(""), SystemExit("no login"), KeyError("WANDB_API_KEY")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_tracker_that_cannot_begin_is_an_error_before_anything_is_done(error, package, tmp_path):
    package("mlflow", set_experiment=fails(error))
    with pytest.raises(ConfigError, match=r"^--track: mlflow failed: .+$"):
        report(["mlflow"], tmp_path, stages=())


def test_a_tracker_that_does_not_begin_in_time_is_one_too(package, tmp_path, monkeypatch):
    monkeypatch.setattr(trackers, "START_SECONDS", 0.01)
    package("wandb", init=never)
    with pytest.raises(ConfigError, match=r"^--track: wandb failed: no answer within 0\.01 s$"):
        report(["wandb"], tmp_path, stages=())


def test_a_package_that_cannot_be_imported_is_one_too(tmp_path, monkeypatch):
    (tmp_path / "mlflow.py").write_text("raise TypeError('protobuf is too new')", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "mlflow", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"^--track: mlflow cannot be imported: protobuf is too new$"):
        add_trackers(lambda stage: None, ["mlflow"], tmp_path)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("later", ["start_run", "log_metrics", "end_run"])
def test_after_that_an_outage_is_one_warning_and_the_work_goes_on(later, error, package, tmp_path, said):
    begun = []
    second = {"start_run": lambda **_: fails(error)() if begun else begun.append(True)}  # fails in the second stage
    put_mlflow(package, **{later: fails(error), **(second if later == "start_run" else {})})
    calls = report(["mlflow"], tmp_path, stages=("one", "two") if later == "start_run" else ("one",))
    assert len(calls) == 3
    (line,) = said()
    assert re.fullmatch(r"--track: mlflow failed: .+; training continues, and log\.jsonl has all values", line)


def test_values_after_an_outage_arrive(package, tmp_path):
    sent = []

    def send(values, step):
        sent.append((step, values))
        if len(sent) == 1:
            raise OSError("503")

    put_mlflow(package, log_metrics=send)
    report(["mlflow"], tmp_path)
    assert sent == SENT


@pytest.mark.parametrize("later", ["log_metrics", "end_run"])
def test_a_call_that_never_returns_holds_nothing_up(later, package, tmp_path, said, monkeypatch):
    monkeypatch.setattr(trackers, "END_SECONDS", 0.01)
    put_mlflow(package, **{"end_run": never, later: never})
    report(["mlflow"], tmp_path)
    assert said() == [
        "--track: mlflow failed: no answer within 0.01 s; training continues, and log.jsonl has all values"
    ]


@pytest.mark.parametrize(
    ("variable", "wanted"),
    [
        (None, ["metasearch"]),
        ("MLFLOW_EXPERIMENT_NAME", []),
        ("MLFLOW_EXPERIMENT_ID", []),
        ("MLFLOW_RUN_ID", []),
        ("MLFLOW_TRACKING_URI", ["metasearch"]),
    ],
)
def test_an_experiment_in_the_environment_counts_more_than_ours(variable, wanted, package, tmp_path, monkeypatch):
    asked = []
    for name in ("EXPERIMENT_NAME", "EXPERIMENT_ID", "RUN_ID"):
        monkeypatch.delenv(f"MLFLOW_{name}", raising=False)
    if variable:
        monkeypatch.setenv(variable, "shop")
    package(
        "mlflow", set_experiment=asked.append, start_run=lambda run_name: None, end_run=lambda: None,
        log_metrics=lambda values, step: None,
    )  # fmt: skip
    report(["mlflow"], tmp_path)
    assert asked == wanted


@pytest.mark.parametrize("given", [(), ("project",), ("name", "dir"), ("project", "name", "dir")])
def test_what_wandb_reads_from_the_environment_is_not_given(given, package, tmp_path, monkeypatch):
    asked = {}
    for key in ("project", "name", "dir"):
        monkeypatch.delenv(f"WANDB_{key.upper()}", raising=False)
    for key in given:
        monkeypatch.setenv(f"WANDB_{key.upper()}", "shop")

    def init(**values):
        asked.update(values)
        return SimpleNamespace(log=lambda values, step: None, finish=lambda: None)

    package("wandb", init=init)
    report(["wandb"], tmp_path / "run")
    ours = {"project": "metasearch", "name": "run-maml-align", "dir": str(tmp_path / "run")}
    assert asked == {key: value for key, value in ours.items() if key not in given} | {"reinit": "finish_previous"}


def test_a_package_that_is_not_installed_is_named_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    line = "pip install 'mlflow"
    with pytest.raises(ConfigError, match=f"^--track mlflow needs the package mlflow: {line}"):
        add_trackers(lambda stage: None, ["mlflow"], tmp_path)


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
