"""Vocabularies learnt from texts, and an encoder that takes one: sizes, rows, and that all else is as it was."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from benchmarks.mini.vocabulary import BYTES, COVERAGE, covered, train_tokenizer, with_vocabulary
from helpers.backbones import make
from helpers.tiers import others_slow
from helpers.tokenizers import TOKENIZERS, WORDS, around
from metasearch.compress.student import make_student
from metasearch.compress.vocabulary import word_table
from metasearch.config.library import shipped
from metasearch.errors import ConfigError, DataError, EncoderError

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


def test_a_size_that_is_too_large_or_too_small_is_answered_with_one_that_fits():
    with pytest.raises(DataError, match=r"^size 90000: the texts have pieces for (\d+) only; take") as caught:
        train_tokenizer(corpus(), 90000)
    reached = int(str(caught.value).split(" for ")[1].split()[0])
    assert len(train_tokenizer(corpus(), reached)) == reached
    # Unigram models have the characters of the names of bytes, too: "<0x>", digits, and A to F.
    least = 5 + 256 + len("▁ab") + len("<x>0123456789ABCDEF")
    with pytest.raises(ConfigError, match=rf"^size 100: .* need {least} at least$"):
        train_tokenizer(["ab ba"], 100)


SENTENCES = [" ".join(WORDS), "Das Haus ist alt", "Der Schlüssel liegt unter der Matte"]


@cache
def small():
    return train_tokenizer(SENTENCES, 310)


def table_of(encoder):
    return word_table(encoder.model[0].auto_model).weight.detach()


def renumbered(tokenizer, pad):
    """Return a tokenizer in which the padding token has changed places with another one."""
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = spec["model"]["vocab"]
    other = next(name for name, number in vocabulary.items() if number == pad)
    vocabulary["[PAD]"], vocabulary[other] = pad, vocabulary["[PAD]"]
    for added in spec["added_tokens"]:
        added["id"] = vocabulary[added["content"]]
    spec["added_tokens"].sort(key=lambda added: added["id"])
    for special in spec["post_processor"]["special_tokens"].values():
        special["ids"] = [vocabulary[name] for name in special["tokens"]]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spec)), **tokenizer.special_tokens_map
    )


@pytest.mark.parametrize(("kind", "pad"), [("xlm-roberta", 0), ("mpnet", 1)])
def test_a_model_that_counts_positions_from_its_padding_token_refuses_another(kind, pad):
    old = make(kind)
    with pytest.raises(EncoderError, match=f"'{kind}' needs a tokenizer with padding token {pad}; here it is 7"):
        with_vocabulary(old, renumbered(old.model.tokenizer, 7))


@pytest.mark.parametrize("kind", others_slow(["bert", "electra-narrow", "modernbert", "byte-level BPE"]))
def test_every_backbone_takes_a_vocabulary_that_was_learnt(kind, tmp_path):
    old = around(kind) if kind in TOKENIZERS else make(kind)
    new = with_vocabulary(old, small())
    config = new.model[0].auto_model.config
    assert table_of(new).shape == (310, table_of(old).shape[1])
    assert (config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id) == (310, 1, 0, 2)
    new.model.save_pretrained(str(tmp_path), create_model_card=False)
    again = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True)
    assert again.max_seq_length == 25
    again.max_seq_length = 30  # as of `make`
    assert again.tokenizer.get_vocab() == small().get_vocab()
    np.testing.assert_allclose(again.encode(SENTENCES), new.encode(SENTENCES, "text"), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("narrow", [False, True])
def test_a_new_token_begins_as_the_mean_of_the_old_pieces_of_its_text(narrow):
    old = make_student(make("bert"), 4, 3) if narrow else make("bert")
    new = with_vocabulary(old, small())
    fresh = [name for name in small().get_vocab() if len(name) > 3 and name not in old.model.tokenizer.get_vocab()]
    fresh = [name for name in fresh if not name.startswith("<")]
    assert fresh
    for name in fresh:
        ids = old.model.tokenizer(name.replace("▁", ""), add_special_tokens=False)["input_ids"]
        expected = sum(table_of(old)[number] for number in ids) / len(ids)
        torch.testing.assert_close(table_of(new)[small().get_vocab()[name]], expected)


def test_special_tokens_take_the_rows_of_their_counterparts():
    old = make("bert")
    new = with_vocabulary(old, small())
    before, after = old.model.tokenizer.get_vocab(), small().get_vocab()
    counterparts = {"<s>": "[CLS]", "</s>": "[SEP]", "<pad>": "[PAD]", "<unk>": "[UNK]", "<mask>": "[MASK]"}
    for name, counterpart in counterparts.items():
        assert torch.equal(table_of(new)[after[name]], table_of(old)[before[counterpart]])
