"""Vectors of an exported folder, here that of a static encoder, and what is said of one that is damaged."""

import json
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import onnx_extra
from helpers.backbones import TEXTS
from helpers.onnx_extra import needs_onnx
from metasearch.cli import main
from metasearch.compress.export import onnx_folder
from metasearch.compress.export.form import Form
from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.encoders.builtin import tiny
from metasearch.errors import EncoderError
from metasearch.pipelines.export import export

pytestmark = [needs_onnx, pytest.mark.slow]


@pytest.fixture(scope="module")
def encoder():
    return onnx_extra.static(tiny.build())


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "words"
    export(encoder, Form(onnx=True), path)
    return path


def test_a_graph_that_fails_the_check_leaves_no_folder(monkeypatch, encoder, tmp_path):
    monkeypatch.setattr(onnx_folder, "TOLERANCE", 0.0)
    with pytest.raises(EncoderError, match=r"differs from the encoder by .* of which 0e\+00 is allowed"):
        export(encoder, Form(onnx=True), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_static_encoder_is_a_graph_and_a_text_of_no_word_has_no_direction(encoder, folder):
    exported = OnnxEncoder(folder)
    assert exported.inputs == ("input_ids", "attention_mask")
    assert exported.facts.longest is None
    np.testing.assert_allclose(exported.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=1e-6)
    assert not exported.encode([""], "text").any()


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
