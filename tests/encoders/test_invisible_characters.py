"""Characters that show nothing change no token, wherever they stand and whatever reads the text."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.compress.trimming import trim
from metasearch.data.formats.blank import remove_invisible
from metasearch.encoders.load import load_encoder
from metasearch.search.indexes import index_documents, open_searcher

TEXTS = (
    "Where is the key?", "أين المفتاح؟ تحت السجادة", "กุญแจอยู่ใต้พรม", "रेलगाड़ी कब निकलती है?", "រថភ្លើងចេញដំណើរ",
    "钥匙在垫子下面", "100 km",
)  # fmt: skip
NAMED = "\u00ad\ufeff\u200e\u200f\u061c\u2066\u2069\u202a\u202e\u200b\u2060\u2061\u2064\u034f\x01\x1b\ufff9\U000e0041"


@functools.cache
def invisible():
    """Return all characters that show nothing."""
    return [character for character in map(chr, range(0x110000)) if not remove_invisible(character)]


@st.composite
def strewn(draw):
    """Return a text, and the same with characters that show nothing anywhere in it."""
    text = draw(st.sampled_from(TEXTS))
    places = draw(st.lists(st.tuples(st.integers(0, len(text)), st.sampled_from(invisible())), min_size=1, max_size=6))
    found = text
    for place, character in sorted(places, reverse=True):
        found = found[:place] + character + found[place:]
    return text, found


@pytest.fixture(scope="module", params=["tiny", "mini"])
def encoder(request):
    return load_encoder(request.param, device="cpu")


def strew(text):
    """Return a text with characters that show nothing between all of its own."""
    return "".join(f"{character}{NAMED[i % len(NAMED)]}" for i, character in enumerate(f"\ufeff{text}"))


@given(both=strewn())
def test_tokens_are_those_of_the_text_without_them(encoder, both):
    for role in ("question", "candidate", "text"):
        plain, other = encoder.tokens(list(both), role)
        assert plain.tolist() == other.tolist()


def test_vectors_and_what_is_truncated_are_those_of_the_text_without_them(encoder):
    others = [strew(text) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(others, "text"), encoder.encode(TEXTS, "text"), atol=1e-6)
    limit = encoder.limit("text")
    # As many words as fit, with special tokens or without.
    assert encoder.is_truncated(["\u200b" * 2 * limit + "key", "key " * 2 * limit], "text").tolist() == [False, True]


def test_joiners_that_shape_letters_are_read():
    encoder = load_encoder("mini", device="cpu")
    for character in "\u200c\u200d":
        plain, joined = encoder.tokens(["क्ष", f"क्{character}ष"], "text")
        assert plain.tolist() != joined.tolist()


def test_vocabularies_are_those_of_the_texts_without_them():
    encoder = load_encoder("tiny")
    texts, others = [*TEXTS, *TEXTS], [strew(text) for text in (*TEXTS, *TEXTS)]
    assert trim(encoder, others).fingerprint == trim(encoder, texts).fingerprint


def test_a_search_finds_the_same_and_shows_what_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    searchers = []
    for name, change in (("plain", str), ("strewn", strew)):
        (tmp_path / name).mkdir()
        for i, text in enumerate(TEXTS):
            (tmp_path / name / f"{i}.txt").write_text(change(text), encoding="utf-8")
        index_documents([name], tmp_path / f"{name}.index", "tiny")
        searchers.append(open_searcher(tmp_path / f"{name}.index"))
    for way in ({}, {"hybrid": True}, {"balance": True}):
        plain = searchers[0].search(TEXTS, top_k=9, **way)
        other = searchers[1].search([strew(text) for text in TEXTS], top_k=9, **way)
        for expected, hits in zip(plain, other, strict=True):
            assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)
            # A mark of byte order at the start of a file is no part of its text.
            assert [f"\ufeff{hit.passage.text}" for hit in hits] == [strew(hit.passage.text) for hit in expected]
