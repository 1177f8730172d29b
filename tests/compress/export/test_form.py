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
        (Form(), "say in which form to export: --plain, --onnx, --int8 or --static"),
        (Form(dimensions=3), "say in which form to export"),
        (Form(plain=True, onnx=True), "--plain and --onnx are two forms"),
        (Form(plain=True, int8=True), "--plain and --int8 are two forms"),
        (Form(plain=True, texts=TEXTS), "say with --dimensions how many"),
        (Form(onnx=True, int8=True), "say with --task where to measure it"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, says, installed):
    with pytest.raises(ConfigError, match=says):
        asked.check(scored=False)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Form(plain=True), "plain"),
        (Form(static=True), "plain"),
        (Form(int8=True), "int8"),
        (Form(static=True, int8=True), "int8"),
        (Form(onnx=True), "onnx"),
        (Form(onnx=True, static=True, dimensions=3, texts=TEXTS), "onnx"),
    ],
)
def test_all_else_is_a_form_with_a_name(asked, name, installed):
    asked.check(scored=False)
    assert asked.name == name


def test_rounding_a_graph_is_allowed_where_a_task_shows_the_loss(installed):
    asked = Form(onnx=True, int8=True)
    asked.check(scored=True)
    assert asked.name == "onnx int8"


def test_missing_packages_are_named_with_the_command_that_installs_the_extra(monkeypatch):
    monkeypatch.setattr(form, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(ConfigError, match=r"^ONNX needs onnxscript: pip install onnx onnxscript onnxruntime$"):
        Form(onnx=True).check(scored=False)
    Form(plain=True).check(scored=False)
