"""Vectors of frozen encoders are computed once, kept whole or not at all, and read back bit for bit."""

import hashlib
import multiprocessing

import numpy as np
import pytest
import torch

from helpers.files import largest_file
from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError, NonFiniteError, RunFolderError
from metasearch.pipelines.distill import target_cache
from metasearch.pipelines.distill.target_cache import LiveTokens, TargetCache, require_comparable

TEXTS = [f"{'a small house ' * (i % 7)}number {i}" for i in range(150)]
PROCESSES = multiprocessing.get_context("fork")


class Plain:
    """An encoder of numpy alone, for what is about files: a vector is the hash of its text. It counts its texts."""

    name, fingerprint = "plain", "0" * 16

    def __init__(self):
        self.encoded = []

    def limit(self, role):
        return 100

    def dimension(self, output):
        return 8

    def lengths(self, texts, role):
        return np.array([len(text.split()) for text in texts])

    def encode(self, texts, role, output="sentence"):
        self.encoded += texts
        rows = [np.frombuffer(hashlib.sha256(text.encode()).digest(), "<u4") for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), 8)


def cached(folder, encoder, texts, output="sentence", kind="float32", on_progress=None):
    """Return the cache with the vectors of texts."""
    cache = TargetCache(folder, encoder, output, kind)
    cache.add(lambda: texts, on_progress)
    return cache


@pytest.fixture(scope="module")
def encoder():
    return tiny.build(MaxLength(text=100))


@pytest.fixture
def small_pieces(monkeypatch):
    """Make pieces of one batch of texts."""
    monkeypatch.setattr(target_cache, "PIECE", 64)


def pieces(folder):
    return sorted(folder.glob("*/*.vectors"))


def assert_kept(folder, texts=TEXTS):
    """Assert that a new store has the vectors of all texts and asks for none."""
    plain = Plain()
    found = cached(folder, plain, texts).vectors(texts)
    assert np.array_equal(found, Plain().encode(texts, "text"))
    assert plain.encoded == []


def test_vectors_are_those_of_the_encoder_bit_for_bit(tmp_path, encoder):
    output = "pooled"
    expected = encoder.encode(TEXTS, "text", output)
    targets = cached(tmp_path, encoder, TEXTS, output)
    found = targets.vectors(TEXTS)
    assert found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()
    assert targets.dimension == expected.shape[1]


def test_smaller_types_round_vectors(tmp_path, encoder):
    kind, error = "float16", 2**-11
    exact = encoder.encode(TEXTS, "text", "pooled")
    found = cached(tmp_path, encoder, TEXTS, "pooled", kind).vectors(TEXTS)
    assert (np.abs(found - exact) <= error * np.abs(exact) + 1e-7).all()
    with pytest.raises(KeyError, match="no stored vector of the text 'other'"):
        cached(tmp_path, encoder, TEXTS, "pooled", kind).vectors(["other"])


def test_only_new_texts_are_encoded_and_the_old_keep_their_bits(tmp_path):
    plain = Plain()
    cached(tmp_path, plain, TEXTS[:100])
    plain.encoded.clear()
    found = cached(tmp_path, plain, TEXTS).vectors(TEXTS)
    assert sorted(plain.encoded) == sorted(TEXTS[100:])
    assert np.array_equal(found, Plain().encode(TEXTS, "text"))


def test_another_encoder_length_or_output_has_its_own_vectors(tmp_path, encoder):
    asked = [
        (encoder, "sentence"),
        (tiny.build(seed=1), "sentence"),
        (tiny.build(MaxLength(text=5)), "sentence"),
        (encoder, "pooled"),
        (encoder, "embedding"),
    ]
    for number, (other, output) in enumerate(asked, 1):
        found = cached(tmp_path, other, TEXTS[:9], output).vectors(TEXTS[:9])
        assert np.array_equal(found, other.encode(TEXTS[:9], "text", output))
        assert len(list(tmp_path.iterdir())) == number


def test_texts_that_come_again_in_another_block_are_encoded_once(tmp_path, small_pieces):
    plain = Plain()
    cached(tmp_path, plain, [*TEXTS, *TEXTS[::-1], "new"])
    assert plain.encoded == [*TEXTS, "new"]


def test_an_interrupt_keeps_the_finished_pieces(tmp_path, small_pieces):
    def stop_at_the_second(done, total):
        if done == 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, Plain(), TEXTS, on_progress=stop_at_the_second)
    plain = Plain()
    cached(tmp_path, plain, TEXTS)
    assert len(plain.encoded) == 150 - 128
    assert_kept(tmp_path)


def compute_and_count(folder, texts, together, counts):
    plain = Plain()
    together.wait(60)
    cached(folder, plain, texts)
    counts.put(len(plain.encoded))


def test_two_processes_at_once_share_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(target_cache, "PIECE", 4)
    together, counts = PROCESSES.Barrier(2), PROCESSES.Queue()
    halves = (TEXTS[:100], TEXTS[50:])
    processes = [
        PROCESSES.Process(target=compute_and_count, args=(tmp_path, half, together, counts)) for half in halves
    ]
    for process in processes:
        process.start()
    found = [counts.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert sum(found) == len(TEXTS)  # none of the 50 that both need was computed twice
    assert_kept(tmp_path)


DAMAGES = {
    "cut": lambda whole: whole[:-7],
    "flipped": lambda whole: whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:],
    "empty": lambda whole: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_piece_is_dropped_with_one_warning_and_computed_again(tmp_path, small_pieces, caplog, damage):
    cached(tmp_path, Plain(), TEXTS)
    damaged = pieces(tmp_path)[1]
    size = damaged.stat().st_size // (16 + 4 * 8)
    damaged.write_bytes(damage(damaged.read_bytes()))
    plain = Plain()
    cached(tmp_path, plain, TEXTS)
    assert len(plain.encoded) == size
    (record,) = caplog.records
    assert f"{damaged.name}: " in record.getMessage()
    assert "computed again" in record.getMessage()
    assert_kept(tmp_path)


def test_a_piece_that_cannot_be_read_is_an_error_and_stays(tmp_path, small_pieces):
    cached(tmp_path, Plain(), TEXTS)
    unreadable = pieces(tmp_path)[1]
    unreadable.unlink()
    unreadable.mkdir()
    with pytest.raises(RunFolderError, match=f"{unreadable.name} cannot be read: Is a directory"):
        cached(tmp_path, Plain(), TEXTS)


def test_a_full_disk_names_the_folder_and_the_bytes_and_keeps_what_was_there(tmp_path):
    cached(tmp_path, Plain(), TEXTS[:10])
    with largest_file(1024), pytest.raises(RunFolderError) as caught:
        cached(tmp_path, Plain(), TEXTS)
    assert "File too large. It needs " in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert_kept(tmp_path, TEXTS[:10])


def test_a_vector_that_is_not_finite_names_the_encoder_and_the_text_and_is_not_kept(tmp_path):
    encoder = tiny.build()
    long = "other " * 50
    _, bad = encoder.features([long, "broken"], "text")["input_ids"]
    encoder.embedder.model[0].auto_model.embeddings.word_embeddings.weight.data[bad[1]] = torch.nan
    with pytest.raises(NonFiniteError, match="encoder tiny: its pooled vector of the text 'broken' is not finite"):
        cached(tmp_path, encoder, [long, "broken"], "pooled")
    assert pieces(tmp_path) == []


# Targets by token are computed with each batch: rows of the encoder itself, text after text.

# Not by length, and more than one part of them: a part has at least 256 tokens.
LONG = [f"{'the old house by the sea ' * (1 + i % 4)}{i}" for i in range(50)]


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_those_of_each_text_alone_in_the_order_of_the_texts(threads):
    encoder = tiny.build(MaxLength(text=32))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = LiveTokens(encoder, "states").vectors(LONG)
    finally:
        torch.set_num_threads(before)
    with torch.no_grad():
        expected = [encoder.embedder(encoder.features([text], "text"), "states").numpy() for text in LONG]
    assert [len(rows) for rows in expected] == encoder.lengths(LONG, "text").tolist()
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-5, atol=1e-5)


def test_texts_after_another_prompt_have_other_tokens():
    encoder = tiny.build(MaxLength(text=32))
    asks = tiny.build(MaxLength(text=32))
    asks.model.prompts = dict.fromkeys(["query", "document", "passage"], "query: ")
    asks.model.default_prompt_name = "query"
    require_comparable(encoder, encoder, "states")
    require_comparable(asks, encoder, "sentence")
    with pytest.raises(ConfigError, match=r"output states: .* puts 'query: ' before texts and .* ''; they must be"):
        require_comparable(asks, encoder, "states")
