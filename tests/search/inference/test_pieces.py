"""A tokenizer of the pieces of a text gives the tokens of the whole tokenizer."""

import json
import shutil
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from metasearch.config.run import E5_PACKAGE
from metasearch.errors import EncoderError
from metasearch.search.inference.open import _folder, load_reader
from metasearch.search.inference.pieces import Pieces

needs_e5 = pytest.mark.skipif(find_spec(E5_PACKAGE) is None, reason=f"{E5_PACKAGE} is not installed")


def whole(name):
    return Tokenizer.from_file(str(_folder(name) / "tokenizer.json"))


@pytest.fixture(scope="module", params=["mini", pytest.param("e5", marks=[needs_e5, pytest.mark.slow])])
def both(request):
    tokenizer = whole(request.param)
    return tokenizer, Pieces.of(tokenizer)


WRITTEN = st.sampled_from(
    ["Where is the key?", "Schlüssel", "鑰匙在墊子", "कहाँ है", "أين المفتاح", " ", "▁", "ﬁ", "\u200d", "\0"]
)


@given(parts=st.lists(WRITTEN | st.text(max_size=8), max_size=8))
def test_any_text_has_the_same_tokens(both, parts):
    tokenizer, pieces = both
    text = "".join(parts)
    found = pieces.tokenizer([text])
    if found is not None:
        small, ids = found
        read = small.encode(text)
        assert ids[read.ids].tolist() == tokenizer.encode(text).ids
        assert read.offsets == tokenizer.encode(text).offsets
        assert small.get_vocab_size() < 1000 < tokenizer.get_vocab_size()


def test_an_unknown_character_costs_as_much_as_in_the_whole_vocabulary():
    scores = {"<unk>": 0.0, "ab": -20.0, "cd": -20.0, "bcd": -1.0, "q": -40.0}
    tokenizer = Tokenizer(models.Unigram(list(scores.items()), 0))
    small, ids = Pieces.of(tokenizer).tokenizer(["abcd"])
    # An unknown "a" has 10 less than the least score, that of "q": -50 - 1 < -20 - 20. Without "q" it would be -30 - 1.
    assert tokenizer.encode("abcd").tokens == small.encode("abcd").tokens == ["ab", "cd"]
    assert ids[small.encode("abcd").ids].tolist() == [1, 2]


def test_special_tokens_and_long_texts_are_left_to_the_whole_one(both):
    _, pieces = both
    special = json.loads(pieces.rest)["added_tokens"][0]["content"]
    assert pieces.tokenizer([f"a {special}b"]) is None
    assert pieces.tokenizer(["a" * 1000, "b" * 1001]) is None
    assert pieces.tokenizer(["a" * 1000, "b" * 1000]) is not None


def test_they_are_read_as_they_were_written(tmp_path, both):
    _, pieces = both
    pieces.write(tmp_path / "pieces.npz")
    for text in ("Where is the key?", "ключ 🔑"):
        before, after = (each.tokenizer([text]) for each in (pieces, Pieces.read(tmp_path / "pieces.npz")))
        assert before[1].tolist() == after[1].tolist()
        assert before[0].to_str() == after[0].to_str()
    (tmp_path / "pieces.npz").write_bytes((tmp_path / "pieces.npz").read_bytes()[:1000])
    assert Pieces.read(tmp_path / "pieces.npz") is None
    assert Pieces.read(tmp_path / "none.npz") is None


def test_other_models_have_none():
    assert Pieces.of(Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))) is None
    assert Pieces.of(Tokenizer(models.Unigram([("a", -1.0), ("b", -2.0)], None))) is None


def test_a_tokenizer_that_was_replaced_is_an_error_for_long_texts_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(_folder("mini"), tmp_path / "model")
    load_reader(str(folder))
    encoder = load_reader(str(folder))
    before = encoder.encode(["Where is the key?"], "question")
    other = folder / "other.json"
    shutil.copyfile(folder / "tokenizer.json", other)
    other.replace(folder / "tokenizer.json")
    assert (encoder.encode(["Where is the key?"], "question") == before).all()
    with pytest.raises(EncoderError, match=r"tokenizer\.json: the file was changed while it was in use; start again"):
        encoder.encode(["key " * 600], "question")


def test_a_query_is_read_without_the_whole_tokenizer(tmp_path, monkeypatch):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path))
    first = load_reader("mini")  # finds out what it is like
    monkeypatch.setattr("metasearch.search.inference.encoder.Tokenizer", None)
    second = load_reader("mini")
    query = ["Where is the key?"]
    assert (first.encode(query, "question") == second.encode(query, "question")).all()
    assert not second.is_truncated(query, "question").any()
