"""Which wishes go together, and what is said of those that do not."""

from pathlib import Path

import pytest

from metasearch.compress.export import form
from metasearch.compress.export.form import Form
from metasearch.errors import ConfigError

TEXTS = (Path("texts.txt"),)


@pytest.fixture
def installed(monkeypatch):
    """As where the extra `onnx` is installed."""
    monkeypatch.setattr(form, "find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Form(), "choose a form: --sentence-transformers, --onnx, --int8 or --static-embeddings"),
        (Form(dimensions=3), "choose a form"),
        (Form(plain=True, onnx=True), "--sentence-transformers and --onnx are two forms"),
        (Form(plain=True, int8=True), "--sentence-transformers and --int8 are two forms"),
        (Form(plain=True, texts=TEXTS), "say with --dimensions how many"),
        (Form(onnx=True, int8=True), "say with --task where to measure it"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, says, installed):
    with pytest.raises(ConfigError, match=says):
        asked.check(scored=False)
