"""Vectors of an exported folder, here that of a static encoder, and what is said of one that is damaged."""

import json
import shutil

import numpy as np
import pytest

from helpers import onnx_extra
from helpers.backbones import TEXTS
from helpers.onnx_extra import needs_onnx
from metasearch.compress.export import check
from metasearch.compress.export.form import Form
from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.encoders.builtin import tiny
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.pipelines.export import export

pytestmark = needs_onnx


@pytest.fixture(scope="module")
def encoder():
    return onnx_extra.static(tiny.build())


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "words"
    export(encoder, Form(onnx=True), path)
    return path


@pytest.mark.slow
def test_a_graph_that_fails_the_check_leaves_no_folder(monkeypatch, encoder, tmp_path):
    monkeypatch.setattr(check, "TOLERANCE", 0.0)
    with pytest.raises(EncoderError, match=r"numbers differ by .* of which 0e\+00 is allowed"):
        export(encoder, Form(onnx=True), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_a_static_encoder_is_a_graph_and_a_text_of_no_word_has_no_direction(encoder, folder):
    exported = OnnxEncoder(folder)
    assert exported.inputs == ("input_ids", "attention_mask")
    assert exported.facts.longest is None
    np.testing.assert_allclose(exported.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=1e-6)
    assert not exported.encode([""], "text").any()


def damage(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (damage("metasearch.json", b"{"), "metasearch.json: the file: "),
        (damage("metasearch.json", b"{}"), "metasearch.json: name: Field required"),
        (damage("tokenizer.json", b"{}"), "tokenizer.json: cannot be read: "),
        (damage("onnx/model.onnx", b"no graph"), "model.onnx: onnxruntime cannot load it: "),
        (lambda folder: (folder / "onnx/model.onnx").unlink(), "model.onnx: onnxruntime cannot load it: "),
        (lambda folder: (folder / "metasearch.json").unlink(), "metasearch.json: No such file"),
    ],
)
def test_a_damaged_file_is_named(break_it, says, folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    break_it(copied)
    with pytest.raises(EncoderError, match=f"{tmp_path}/copy/.*{says}"):
        OnnxEncoder(copied)


def test_a_tokenizer_that_does_not_cut_is_refused(folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    tree = json.loads((copied / "tokenizer.json").read_text(encoding="utf-8"))
    (copied / "tokenizer.json").write_text(json.dumps({**tree, "truncation": None}), encoding="utf-8")
    with pytest.raises(EncoderError, match="does not say how texts are cut and padded; export the encoder again"):
        OnnxEncoder(copied)


def test_opened_as_an_encoder_to_train_it_says_what_it_is(folder):
    with pytest.raises(EncoderError, match="is an export to ONNX, which `metasearch evaluate` and onnxruntime read"):
        open_checkpoint(str(folder))


def test_progress_is_told_and_no_text_has_no_vector(folder):
    exported, heard = OnnxEncoder(folder), []
    exported.on_progress = lambda done, total: heard.append((done, total))
    exported.encode([*TEXTS, TEXTS[0]], "text")
    assert heard[-1] == (len(TEXTS), len(TEXTS))
    assert exported.encode([], "text").shape == (0, 128)
