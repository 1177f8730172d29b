"""An exported folder that is sound, one that fails its check, and one that is damaged."""

import json
import re
import shutil

import pytest
from click.testing import CliRunner

from helpers.onnx_extra import needs_onnx
from metasearch.cli import main
from metasearch.compress import onnx_folder
from metasearch.compress.onnx_encoder import OnnxEncoder
from metasearch.compress.student import make_static
from metasearch.config.compress import Form
from metasearch.encoders.builtin import tiny
from metasearch.errors import EncoderError
from metasearch.pipelines.export import export

pytestmark = [needs_onnx, pytest.mark.slow]


@pytest.fixture(scope="module")
def encoder():
    return tiny.build()


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "graph"
    export(encoder, Form(onnx=True), path)
    return path


def test_a_graph_that_fails_the_check_leaves_no_folder(monkeypatch, encoder, tmp_path):
    monkeypatch.setattr(onnx_folder, "TOLERANCE", 0.0)
    with pytest.raises(EncoderError, match=r"differs from the encoder by .* of which 0e\+00 is allowed"):
        export(encoder, Form(onnx=True), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_a_static_encoder_needs_no_graph(encoder, tmp_path):
    with pytest.raises(EncoderError, match=r"^tiny-static: static embeddings need no graph"):
        export(make_static(encoder), Form(onnx=True), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def doctor(folder, code=0):
    """Return what `metasearch doctor` finds of a folder; check its exit code."""
    result = CliRunner().invoke(main, ["doctor", "--json", str(folder)])
    assert result.exit_code == code, result.output
    section = json.loads(result.stdout)["sections"][-1]
    assert section["title"] == f"{folder}: an export to ONNX"
    (found,) = section["findings"]
    return found


def test_doctor_names_a_sound_folder_for_what_it_is(folder):
    found = doctor(folder)
    assert (found["about"], found["state"]) == ("graph", "ok")
    assert found["found"] == "128 dimensions"


def damage(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (damage("metasearch.json", b"{}"), "metasearch.json: name: Field required"),
        (damage("tokenizer.json", b"{}"), "tokenizer.json: cannot be read: "),
        (damage("onnx/model.onnx", b"no graph"), "model.onnx: onnxruntime cannot load it: "),
        (lambda folder: (folder / "metasearch.json").unlink(), "metasearch.json: No such file"),
    ],
)
def test_a_damaged_file_is_named_here_and_by_doctor(break_it, says, folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    break_it(copied)
    with pytest.raises(EncoderError, match=f"{tmp_path}/copy/.*{says}"):
        OnnxEncoder(copied)
    if (copied / "metasearch.json").exists():  # it shows that the folder is an export
        found = doctor(copied, code=6)
        assert (found["state"], bool(re.search(says, found["found"]))) == ("bad", True)
