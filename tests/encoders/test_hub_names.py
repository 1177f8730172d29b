"""Encoders by their name on the model hub: from its cache without network, and never another encoder."""

import pytest
from click.testing import CliRunner
from huggingface_hub.errors import RepositoryNotFoundError

from metasearch.cli import main
from metasearch.config.library import shipped
from metasearch.encoders import open as opened
from metasearch.encoders.builtin import tiny
from metasearch.errors import EncoderError

NAME = "nobody/no-such-model"
ADVICE = "Built-in encoders need no network, such as --encoder mini-e5; see `metasearch ls encoders`"


@pytest.mark.parametrize(
    "command", [["train", "--mode=trans"], ["evaluate"], ["crossval", "--learner=zero-shot", "--folds=1", "--seeds=0"]]
)
def test_without_a_network_the_tasks_encoder_is_an_error_with_the_option_that_works(tmp_path, command):
    text = (shipped() / "demo.yaml").read_text(encoding="utf-8")
    for old, new in (("task: demo", "task: far"), ("encoder: mini", f"encoder: {NAME}"), ("data: demo\n", "")):
        text = text.replace(old, new)
    (tmp_path / "far.yaml").write_text(text, encoding="utf-8")
    given = ["--task=far", f"--include={tmp_path}", f"--data={shipped() / 'demo'}", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(main, [*command, *given])
    assert result.exit_code == 6
    (line,) = [line for line in result.stderr.splitlines() if "error: " in line]
    assert line.startswith(f"metasearch: error: encoder '{NAME}' is no built-in encoder, no folder here, and cannot be")
    assert line.endswith(ADVICE)
    assert not (tmp_path / "out").exists()


def test_a_hub_that_answers_is_asked_once_and_loading_says_what_is_wrong(monkeypatch):
    def answer(url, timeout):
        asked.append(url)
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    asked = []
    monkeypatch.setattr(opened, "get_hf_file_metadata", answer)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(EncoderError, match=f"'{NAME}' .* cannot be loaded from the model hub"):
        opened.open_checkpoint(NAME)
    assert len(asked) == 1


def test_a_checkpoint_in_the_cache_of_the_hub_needs_no_network(tmp_path, monkeypatch, caplog):
    cached = tmp_path / "models--nobody--cached"
    tiny.build().save(cached / "snapshots" / ("0" * 40))
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert opened.open_checkpoint("nobody/cached").size == tiny.build().size
    assert "Retrying" not in caplog.text
