"""`metasearch doctor` of folders that `metasearch export --onnx` wrote."""

import json
import shutil

import pytest
from click.testing import CliRunner

from helpers import onnx_extra
from helpers.onnx_extra import needs_onnx
from metasearch.cli import main
from metasearch.compress.export.form import Form
from metasearch.encoders.builtin import tiny
from metasearch.pipelines.export import export

pytestmark = needs_onnx


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "graph"
    export(onnx_extra.static(tiny.build()), Form(onnx=True), folder)
    return folder


def doctor(folder, code=0):
    """Return the findings about a folder; check the exit code."""
    found = CliRunner().invoke(main, ["doctor", "--json", str(folder)])
    assert found.exit_code == code, found.output
    section = json.loads(found.stdout)["sections"][-1]
    assert section["title"] == f"{folder}: an export to ONNX"
    return section["findings"]


def test_a_sound_export_is_named_for_what_it_is(graph):
    (found,) = doctor(graph)
    assert (found["about"], found["state"]) == ("graph", "ok")
    assert found["found"].startswith("128 dimensions, fp32; made of 'tiny")


@pytest.mark.parametrize("name", ["metasearch.json", "tokenizer.json", "onnx/model.onnx"])
def test_a_damaged_file_of_an_export_is_named(graph, tmp_path, name):
    folder = shutil.copytree(graph, tmp_path / "graph")
    (folder / name).write_text("{")
    (found,) = doctor(folder, code=6)
    assert found["state"] == "bad"
    assert str(folder / name) in found["found"]
