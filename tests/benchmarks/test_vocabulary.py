"""Vocabularies learnt from texts: nothing is unknown, the same texts give the same tokenizer, sizes are as asked."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mini.vocabulary import BYTES, COVERAGE, covered, train_tokenizer
from metasearch.config.library import shipped
from metasearch.errors import ConfigError, DataError

SIZE = 900
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def corpus():
    """Return the sentences of the embedded benchmark in German and Thai."""
    rows = [
        json.loads(line)
        for code in ("de", "th")
        for line in (shipped() / "demo" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return [text for row in rows for text in row["sentences"]]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(corpus(), SIZE)


def test_special_tokens_are_numbered_as_in_xlm_r_and_bytes_follow(tokenizer):
    assert tokenizer.convert_ids_to_tokens(list(range(4))) == SPECIAL
    assert tuple(tokenizer.convert_ids_to_tokens(list(range(4, 4 + 256)))) == tuple(BYTES)
    assert tokenizer.convert_ids_to_tokens(SIZE - 1) == "<mask>"
    numbers = (tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id)
    assert numbers == (tokenizer.cls_token_id, 1, tokenizer.sep_token_id, 3) == (0, 1, 2, 3)


# The mark of a word's beginning is read as a space, and "<" may begin the name of a special token.
@given(st.text(st.characters(exclude_characters="▁<", exclude_categories=["Cs"])))
def test_no_text_is_unknown_and_every_text_comes_back_normalised(tokenizer, text):
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.unk_token_id not in ids
    expected = tokenizer.backend_tokenizer.normalizer.normalize_str(text)
    assert tokenizer.decode(ids, skip_special_tokens=True) == expected


def test_the_rarest_characters_are_left_to_their_bytes():
    common, rare = "abc", "☃"
    texts = [common * 1000, rare]
    mass = 3000 / 3001
    assert mass > COVERAGE
    assert covered(texts) == set(common)
    assert covered([common, rare]) == {*common, rare}


def test_a_size_that_is_too_large_is_answered_with_the_one_that_the_texts_have():
    with pytest.raises(DataError, match=r"^size 90000: the texts have pieces for (\d+) only; take") as caught:
        train_tokenizer(corpus(), 90000)
    reached = int(str(caught.value).split(" for ")[1].split()[0])
    assert len(train_tokenizer(corpus(), reached)) == reached


def test_a_size_that_does_not_hold_the_characters_is_answered_with_the_least():
    texts = ["ab ba"]
    # Unigram models have the characters of the names of bytes, too: "<0x>", digits, and A to F.
    least = 5 + 256 + len("▁ab") + len("<x>0123456789ABCDEF")
    with pytest.raises(ConfigError, match=rf"^size 100: .* need {least} at least$"):
        train_tokenizer(texts, 100)
