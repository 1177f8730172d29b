"""Encoders stored in int8: what is lost, what loads them, and what is said of damaged ones."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.torch import load_file, save_file

from helpers.backbones import CONFIGS, LENGTHS, TEXTS, make
from helpers.commands import metasearch
from metasearch.compress.student import make_student
from metasearch.config.compress import Form
from metasearch.config.roles import MaxLength
from metasearch.encoders import int8 as stored
from metasearch.encoders.compressed import CompressedModel
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.pipelines.export import export

STORED = Form(int8=True)
FINITE = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
MATRICES = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)


@pytest.fixture(scope="module")
def student():
    """BERT with a factorised word table and two of its layers run three times, lengths as in `LENGTHS`."""
    return make_student(make("bert"), bottleneck=4, recurrent=2)


@pytest.fixture(scope="module")
def folder(student, tmp_path_factory):
    """The student in int8."""
    path = tmp_path_factory.mktemp("stored") / "student"
    export(student, STORED, path)
    return path


def opened(folder):
    return open_checkpoint(str(folder), LENGTHS)


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_matrix_is_integers_and_a_step_for_each_row_or_for_each_column_where_that_loses_less(by_columns):
    # 1.27 / 127 = 0.01 and 127 / 127 = 1: by rows nothing is lost, by columns the small row is rounded to steps of 1.
    weight = torch.tensor([[1.27, -0.64, 0.01], [127.0, 3.0, -90.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[127, -64, 1], [127, 3, -90], [0, 0, 0]], dtype=torch.int8)
    steps = torch.tensor([[0.01], [1.0], [0.0]])
    if by_columns:
        weight, expected, steps = weight.T, expected.T, steps.T
    found = stored.quantise(weight)
    assert found[0].dtype == torch.int8
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(found[1], steps)
    torch.testing.assert_close(stored.dequantise(*found), weight)


@given(MATRICES)
def test_each_weight_comes_back_to_within_half_a_step(values):
    weight = torch.from_numpy(values)
    integers, steps = stored.quantise(weight)
    back = stored.dequantise(integers, steps)
    largest = weight.abs().amax(1 if steps.shape[1] == 1 and steps.shape[0] == weight.shape[0] else 0, keepdim=True)
    torch.testing.assert_close(steps, largest / 127)
    # A few roundings of float32 on the way come on top.
    assert ((back - weight).abs() <= 0.5 * steps + 1e-6 * weight.abs()).all()


def test_a_stored_encoder_is_small_and_its_vectors_are_close_to_the_originals(student, folder):
    tensors = load_file(folder / "model.safetensors")
    matrices = {name for name, weight in student.model[0].auto_model.state_dict().items() if weight.ndim == 2}
    assert {name for name, tensor in tensors.items() if tensor.dtype == torch.int8} == matrices
    assert {tensor.dtype for name, tensor in tensors.items() if name not in matrices} == {torch.float32}
    cosines = (opened(folder).encode(TEXTS, "text") * student.encode(TEXTS, "text")).sum(1)
    assert cosines.min() > 0.999


def test_what_is_loaded_is_the_transformer_itself_in_float32_with_its_lengths_and_prompts(student, folder):
    found = opened(folder)
    assert isinstance(found.model[0].auto_model, CompressedModel)
    assert {weight.dtype for weight in found.embedder.parameters()} == {torch.float32}
    assert found.parameter_count == student.parameter_count
    assert (found.model.prompts, found.model.max_seq_length) == (student.model.prompts, student.model.max_seq_length)
    for text in TEXTS:
        assert found.model.tokenizer(text)["input_ids"] == student.model.tokenizer(text)["input_ids"]


@pytest.mark.parametrize("kind", ["mpnet", "modernbert", "t5", "gpt2"])
def test_a_stock_encoder_of_any_kind_is_stored_too_modules_after_it_as_they_are(kind, tmp_path):
    encoder = make(kind, dense=True, layers=1)
    export(encoder, STORED, tmp_path / "small")
    found = opened(tmp_path / "small")
    assert type(found.model[0].auto_model) is type(encoder.model[0].auto_model)
    assert torch.equal(found.model[2].linear.weight, encoder.model[2].linear.weight)
    assert (found.encode(TEXTS, "text") * encoder.encode(TEXTS, "text")).sum(1).min() > 0.99
    if kind in CONFIGS:
        assert metasearch("compress", tmp_path / "small", "--bottleneck", 4, "--sizes-only").exit_code == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_and_nothing_is_left(value, tmp_path):
    encoder = make("bert", layers=1)
    with torch.no_grad():
        encoder.model[0].auto_model.encoder.layer[0].output.dense.weight[3, 5] = value
    with pytest.raises(EncoderError, match=r"'encoder\.layer\.0\.output\.dense\.weight' is not finite"):
        export(encoder, STORED, tmp_path / "small")
    assert list(tmp_path.iterdir()) == []


TABLE = "backbone.embeddings.word_embeddings.table.weight"
NORM = "backbone.embeddings.LayerNorm.weight"


def changed(change):
    def damage(path):
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
        change(tensors)
        save_file(tensors, path, metadata={"format": "pt"})

    return damage


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-7]), "Error while deserializing header: "),
        (changed(lambda tensors: tensors.pop(TABLE + ".scale")), rf"the file is damaged: there is no '{TABLE}\.scale'"),
        (changed(lambda tensors: tensors[NORM].fill_(float("nan"))), f"'{NORM}' is not finite"),
        (changed(lambda tensors: tensors.pop(NORM)), f'weights do not fit the configuration: .*Missing .*"{NORM}"'),
        (changed(lambda tensors: tensors.update({NORM: torch.ones(3)})), r"size mismatch for .*torch.Size\(\[3\]\)"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(damage, says, student, tmp_path):
    export(student, STORED, tmp_path / "small")
    damage(tmp_path / "small" / "model.safetensors")
    with pytest.raises(EncoderError, match=f"{tmp_path}/small/model.safetensors: .*{says}"):
        opened(tmp_path / "small")


def test_export_writes_it_and_says_how_large_the_folder_is(tmp_path):
    size, model = metasearch("export", "tiny", "--int8", "-o", tmp_path / "small").stdout.splitlines()
    written = sum(path.stat().st_size for path in (tmp_path / "small").rglob("*") if path.is_file())
    assert (size, model) == (f"size: {written / 10**6:.2f} MB", f"model: {tmp_path / 'small'}")
    weights = Encoder(opened(tmp_path / "small").model, "small", MaxLength()).parameter_count
    assert weights < (tmp_path / "small" / "model.safetensors").stat().st_size < 1.1 * weights


def test_saved_again_it_is_an_ordinary_folder_with_the_same_vectors_to_the_bit(folder, tmp_path):
    loaded = opened(folder)
    loaded.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["model_type"] == "metasearch-compressed"
    assert {tensor.dtype for tensor in load_file(tmp_path / "model" / "model.safetensors").values()} == {torch.float32}
    again = opened(tmp_path / "model")
    np.testing.assert_array_equal(again.encode(TEXTS, "text"), loaded.encode(TEXTS, "text"))
    assert again.fingerprint == loaded.fingerprint
