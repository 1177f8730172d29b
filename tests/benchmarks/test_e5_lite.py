"""The build of the encoder `e5-lite`."""

import numpy as np
import pytest

from benchmarks.e5_lite import build
from benchmarks.e5_lite.words import LANGUAGES
from metasearch.encoders.builtin import e5

SPECIAL = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
PIECES = [*SPECIAL, ("▁", -2.0), ("▁the", -3.0), ("▁key", -4.0), ("k", -5.0), ("e", -5.0), ("y", -5.0), ("Ω", -6.0),
          ("▁they", -7.0), ("<mask>", 0.0)]  # fmt: skip
NUMBERS = {piece: number for number, (piece, _) in enumerate(PIECES)}


@pytest.fixture(scope="module")
def tokenizer():
    return e5.tokenizer(PIECES, 512)


def test_the_share_of_a_piece_is_that_of_the_words_with_it(tokenizer):
    found = build.shares(tokenizer, {"the": 2.0, "key": 1.0, "yk": 1.0})
    # ▁the twice, ▁key once, and ▁ y k once.
    assert [found[NUMBERS[piece]] for piece in ("▁the", "▁key", "▁", "y", "k")] == [2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6]


def test_kept_are_special_pieces_characters_of_scripts_that_occur_and_the_most_frequent(tokenizer):
    frequency = np.zeros(len(PIECES))
    for piece, share in {"▁the": 0.1, "▁key": 0.5, "▁they": 0.2, "e": 0.1, "▁": 0.1}.items():
        frequency[NUMBERS[piece]] = share
    # Besides the special ones, ▁ k e y; ▁the and ▁they are the lowest of whole words, and Ω is of another script.
    kept = [PIECES[number][0] for number in build.choose(tokenizer, frequency, 11)]
    assert kept == ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁key", "k", "e", "y", "▁they", "<mask>"]


def test_a_table_of_256_different_rows_is_rounded_to_itself():
    rows = np.arange(256 * 6, dtype=np.float32).reshape(256, 6)
    book, codes = build.quantised(rows, np.ones(256), part=3)
    assert (book.shape, codes.shape) == ((2, 256, 3), (256, 2))
    np.testing.assert_array_equal(book[np.arange(2), codes].reshape(256, 6), rows)


def test_a_file_is_read_as_it_was_written():
    sizes = {**dict.fromkeys(e5.SIZES, 2), "hidden_size": 6, "layer_norm_eps": 1e-12}
    book, codes = np.arange(2 * 256 * 3).reshape(2, 256, 3).astype("<f2"), np.array([[0, 1], [255, 0]], np.uint8)
    tensors = {
        "a": e5.Packed(e5.FLOAT32, 2, np.array([1.5, -2.0], "<f4").tobytes()),
        build.TABLE: e5.Packed(e5.CODES, 12, book.tobytes() + codes.tobytes()),
    }
    found, pieces, weights = e5.read(build.written(sizes, PIECES, tensors))
    assert (found, pieces) == (sizes, PIECES)
    np.testing.assert_array_equal(weights["a"], [1.5, -2.0])
    rows = [[*book[0, 0], *book[1, 1]], [*book[0, 255], *book[1, 0]]]
    np.testing.assert_array_equal(weights[build.TABLE].reshape(2, 6), rows)


def test_languages_are_in_order_and_none_is_twice():
    assert list(LANGUAGES) == sorted(set(LANGUAGES))
