"""A folder with an ONNX graph: the encoder's vectors for every family, whole or not at all, and used without torch."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling

from helpers import onnx_extra
from helpers.backbones import CONFIGS, LENGTHS, TEXTS, make
from helpers.onnx_extra import needs_onnx
from metasearch.compress import onnx_folder, onnx_graph
from metasearch.compress.onnx_encoder import OnnxEncoder, read_facts
from metasearch.compress.onnx_folder import EXAMPLE, write_onnx
from metasearch.compress.standard import narrowed
from metasearch.config.compress import Form
from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.pipelines.export import export

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytestmark = [needs_onnx, pytest.mark.slow]
ROLES = ("question", "candidate", "text")


@pytest.fixture(scope="module")
def encoder():
    """BERT of one layer, with another length and another prompt for each role."""
    made = onnx_extra.small()
    made.max_length = MaxLength(question=7, candidate=30, text=12)
    return made


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "bert"
    export(encoder, Form(onnx=True), path)
    return path


@pytest.mark.parametrize("role", ROLES)
def test_texts_of_each_role_have_the_vectors_of_the_encoder(role, encoder, folder):
    found = OnnxEncoder(folder).encode(TEXTS, role)
    np.testing.assert_allclose(found, encoder.encode(TEXTS, role), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_the_folder_says_lengths_prompts_and_where_it_comes_from(encoder, folder):
    facts = read_facts(folder)
    assert facts.lengths == MaxLength(question=7, candidate=30, text=12)
    assert facts.prompts == {"question": "query: ", "candidate": "passage: ", "text": ""}
    assert (facts.dimension, facts.longest, facts.fingerprint) == (16, 40, encoder.fingerprint)
    assert 0 < facts.difference <= onnx_folder.TOLERANCE
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    assert tokenizer["truncation"]["max_length"] == 30
    assert tokenizer["padding"]["pad_id"] == encoder.model.tokenizer.pad_token_id
    assert json.loads((folder / "config.json").read_text())["model_type"] == "bert"


@pytest.mark.parametrize("other", [0.001, float("nan")])
def test_a_graph_that_computes_something_else_is_noticed(other, encoder, folder):
    changed = copy.deepcopy(encoder)
    with torch.no_grad():
        changed.model[0].auto_model.embeddings.LayerNorm.bias[3] += other
    with pytest.raises(EncoderError, match="the ONNX graph differs from the encoder by"):
        onnx_folder.difference(changed, OnnxEncoder(folder))


def test_a_prompt_or_length_that_differs_is_noticed(folder, tmp_path):
    made = onnx_extra.small()
    made.max_length = MaxLength(question=9, candidate=30, text=12)
    with pytest.raises(EncoderError, match=r"differs from the encoder by .* \(.*question"):
        onnx_folder.difference(made, OnnxEncoder(folder))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "mpnet" else pytest.mark.exhaustive) for kind in CONFIGS]
)
@pytest.mark.parametrize("how", ["whole", pytest.param("student", marks=pytest.mark.exhaustive)])
def test_every_family_and_its_students_are_the_same_up_to_rounding(kind, how, tmp_path):
    encoder = make(kind, layers=2) if how == "whole" else onnx_extra.student(kind)
    facts = write_onnx(encoder, tmp_path)
    assert 0 < facts.difference <= 1e-5
    for texts in (TEXTS, TEXTS * 12, ["x"]):
        found = OnnxEncoder(tmp_path).encode(texts, "candidate")
        np.testing.assert_allclose(found, encoder.encode(texts, "candidate"), atol=1e-5)


def test_an_encoder_without_a_limit_is_not_checked_on_texts_that_would_fill_the_memory(tmp_path, monkeypatch):
    # 12 texts of 9,200 tokens each have 12 x 9,200^2 pairs of tokens: 4 GB for each head.
    read = []
    plain = OnnxEncoder.encode
    monkeypatch.setattr(OnnxEncoder, "encode", lambda self, texts, role: read.extend(texts) or plain(self, texts, role))
    encoder = onnx_extra.small("t5")
    encoder.model.max_seq_length = UNLIMITED
    encoder.max_length = MaxLength(question=UNLIMITED, candidate=UNLIMITED, text=UNLIMITED)
    assert 0 < write_onnx(encoder, tmp_path).difference <= 1e-5
    assert max(map(len, read)) == 512


def test_what_comes_after_the_layers_is_in_the_graph(tmp_path):
    """Pooling of the first token, a projection, and fewer dimensions."""
    made = onnx_extra.small()
    made.model[1] = Pooling(16, pooling_mode="cls")
    encoder = narrowed(onnx_extra.neutral(Encoder(made.model, "cls", LENGTHS)), 3)
    facts = write_onnx(encoder, tmp_path / "graph")
    assert facts.dimension == encoder.dimension() == 3
    found = OnnxEncoder(tmp_path / "graph").encode(TEXTS, "question")
    np.testing.assert_allclose(found, encoder.encode(TEXTS, "question"), atol=1e-5)


def test_weights_that_do_not_fit_into_one_file_go_to_one_beside_it(encoder, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "LARGEST", 1000)
    copied = shutil.copytree(folder, tmp_path / "copy")
    whole = onnx.load(copied / "onnx" / "model.onnx")
    (copied / "onnx" / "model.onnx").unlink()
    onnx_graph.save(whole, copied / "onnx" / "model.onnx")
    assert (copied / "onnx" / "model.onnx_data").stat().st_size > 1000
    np.testing.assert_allclose(OnnxEncoder(copied).encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=1e-5)


WITHOUT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "sentence_transformers", "metasearch"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refuse())
"""
AFTER = """
import json
print(json.dumps({role: encode(json.loads(sys.argv[1]), role).tolist() for role in ("question", "candidate", "text")}))
"""


def test_a_graph_names_no_folder_of_its_maker_and_is_none_to_train(folder):
    assert str(Path.cwd()).encode() not in (folder / "onnx" / "model.onnx").read_bytes()
    with pytest.raises(EncoderError, match="is an ONNX export, which only `metasearch evaluate` and onnxruntime read"):
        open_checkpoint(str(folder))


def test_the_example_needs_onnxruntime_and_tokenizers_alone(encoder, folder):
    example = EXAMPLE.format(folder=folder)
    assert f"```python\n{EXAMPLE.format(folder='.')}```" in (folder / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, "-c", WITHOUT + example + AFTER, json.dumps(TEXTS)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for role, vectors in json.loads(result.stdout.splitlines()[-1]).items():
        np.testing.assert_allclose(vectors, encoder.encode(TEXTS, role), atol=1e-5)


def test_a_graph_that_fails_the_check_leaves_no_folder(monkeypatch, encoder, tmp_path):
    monkeypatch.setattr(onnx_folder, "TOLERANCE", 0.0)
    with pytest.raises(EncoderError, match=r"differs from the encoder by .* of which 0e\+00 is allowed"):
        export(encoder, Form(onnx=True), tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def damage(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (damage("metasearch.json", b"{}"), "metasearch.json: name: Field required"),
        (damage("tokenizer.json", b"{}"), "tokenizer.json: cannot be read: "),
        (damage("onnx/model.onnx", b"no graph"), "model.onnx: onnxruntime cannot load it: "),
        (lambda folder: (folder / "metasearch.json").unlink(), "metasearch.json: No such file"),
    ],
)
def test_a_damaged_file_is_named(break_it, says, folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    break_it(copied)
    with pytest.raises(EncoderError, match=f"{tmp_path}/copy/.*{says}"):
        OnnxEncoder(copied)
