"""A trimmed encoder cuts and encodes every text as before whose tokens were all kept."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models
from transformers import BertTokenizer

from benchmarks.mini.vocabulary import train_tokenizer, with_vocabulary
from helpers.backbones import make, shrunk
from helpers.tokenizers import TOKENIZERS, WORDS, around
from metasearch.compress.trimming import beginning, cut, needed, trim
from metasearch.compress.vocabulary import word_table

TEXTS = ["the key is under the mat", "an old house", "KEYHOLE ☃ a中b", "", "中"]


def cut_into(encoder, text):
    tokenizer = encoder.model.tokenizer
    return tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])


@pytest.fixture(scope="module", params=TOKENIZERS)
def pair(request):
    """An encoder around a tokenizer of each kind, and what trimming makes of it."""
    encoder = around(request.param)
    return encoder, trim(encoder, TEXTS)


def test_texts_are_cut_and_encoded_as_before(pair):
    old, new = pair
    assert [cut_into(new, text) for text in TEXTS] == [cut_into(old, text) for text in TEXTS]
    for output in ("sentence", "pooled", "embedding"):
        np.testing.assert_array_equal(new.encode(TEXTS, "text", output), old.encode(TEXTS, "text", output))


@given(st.lists(st.sampled_from([*WORDS, *"thekyomu", "old", "中", "KEYHOLE"]), max_size=6), st.booleans())
def test_so_is_every_text_whose_tokens_were_kept(pair, words, spaced):
    old, new = pair
    text = (" " if spaced else "").join(words)
    before = cut_into(old, text)
    known = new.name != "WordPiece" or "[UNK]" not in before
    if known and set(before) <= set(new.model.tokenizer.get_vocab()):
        assert cut_into(new, text) == before
        np.testing.assert_array_equal(new.encode([text], "text"), old.encode([text], "text"))


def test_tokens_that_no_text_has_are_gone_and_their_rows_with_them(pair):
    old, new = pair
    before, after = old.model.tokenizer.get_vocab(), new.model.tokenizer.get_vocab()
    assert set(after) < set(before)
    assert sorted(after.values()) == list(range(len(after)))
    rows, kept = word_table(old.model[0].auto_model).weight, word_table(new.model[0].auto_model).weight
    assert len(kept) == len(after) == new.model[0].auto_model.config.vocab_size
    for name, number in after.items():
        np.testing.assert_array_equal(kept[number].detach(), rows[before[name]].detach())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_of_a_number_of_tokens_the_most_frequent_stay_and_rare_words_are_spelt(name, caplog):
    caplog.set_level("INFO")
    encoder, texts = around(name), ["the key", "the key", "the mat under the house"]
    kept, rare = len(trim(encoder, texts).model.tokenizer), "the mat under the house"
    # Tokens that no text has, such as other characters, go first.
    sizes = range(kept - 1, 0, -1)
    fewer = next(m for m in (trim(encoder, texts, n) for n in sizes) if cut_into(m, rare) != cut_into(encoder, rare))
    assert f"the {len(fewer.model.tokenizer):,} most frequent of {kept:,} tokens are kept" in caplog.text
    # What is left of the vocabulary has the vectors that it had, and a text of frequent words is as it was.
    assert cut_into(fewer, "the key") == cut_into(encoder, "the key")
    np.testing.assert_array_equal(fewer.encode(["the key"], "text"), encoder.encode(["the key"], "text"))
    assert len(cut_into(fewer, rare)) > len(cut_into(encoder, rare))
    assert encoder.model.tokenizer.unk_token not in cut_into(fewer, rare)
    assert "unknown" not in caplog.text
    # A number that is not reached changes nothing.
    assert len(trim(encoder, texts, kept).model.tokenizer) == kept


def test_special_tokens_have_their_new_numbers_everywhere(pair):
    tokenizer, config = pair[1].model.tokenizer, pair[1].model[0].auto_model.config
    assert tokenizer.special_tokens_map == pair[0].model.tokenizer.special_tokens_map
    assert tokenizer.pad_token_id == config.pad_token_id == word_table(pair[1].model[0].auto_model).padding_idx
    assert tokenizer("the")["input_ids"][0] == tokenizer.cls_token_id
    assert tokenizer("the")["input_ids"][-1] == tokenizer.sep_token_id
    for name in ("bos", "eos"):
        assert getattr(config, f"{name}_token_id") == getattr(tokenizer, f"{name}_token_id")


def test_new_words_are_spelt_with_the_characters_of_kept_tokens():
    new = trim(around("WordPiece"), ["the key"])
    assert cut_into(new, "teky") == ["[CLS]", "t", "##e", "##k", "##y", "[SEP]"]


def test_bytes_are_kept_so_nothing_becomes_unknown():
    texts = ["ab ba cab", "bac abba"]
    tokenizer = train_tokenizer([*texts, "д"], 5 + 256 + len("▁abcд") + len("<x>0123456789ABCDEF"))
    new = trim(with_vocabulary(make("bert"), tokenizer), texts)
    assert "д" not in new.model.tokenizer.get_vocab()
    assert cut_into(new, "д") == ["<s>", "▁", *(f"<0x{byte:02X}>" for byte in "д".encode()), "</s>"]


def test_tokens_of_prompts_are_kept():
    encoder = around("WordPiece")
    encoder.model.prompts = {"query": "night "}
    new = trim(encoder, ["the key"])
    np.testing.assert_array_equal(new.encode(["the key"], "question"), encoder.encode(["the key"], "question"))
    assert "nigh" in new.model.tokenizer.get_vocab()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bottleneck"), [("bert", None), ("xlm-roberta", 4), ("electra-narrow", None), ("modernbert", 4)]
)
def test_every_backbone_and_its_compressed_student_can_be_trimmed(kind, bottleneck, tmp_path):
    encoder = make(kind)
    if bottleneck:
        encoder = shrunk(encoder, bottleneck)
    new = trim(encoder, ["Where is the key?", "กุญแจ"])
    texts = ["Where is the key?", "กุญแจ", "the Where"]
    np.testing.assert_array_equal(new.encode(texts, "text"), encoder.encode(texts, "text"))
    assert len(word_table(new.model[0].auto_model).weight) == len(new.model.tokenizer) < 400
    new.model.save_pretrained(str(tmp_path), create_model_card=False)
    again = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True)
    np.testing.assert_allclose(again.encode(texts), encoder.encode(texts, "text"), atol=1e-6)


# Pieces over three letters, with few different scores, so that many paths are equally good.
LETTERS = "abc"
pieces = st.text(LETTERS, min_size=1, max_size=4)
EVERY_TEXT = ["".join(text) for size in range(6) for text in itertools.product("abcx", repeat=size)]


def assert_kept_texts_are_cut_alike(tokenizer, sample, unknown=None):
    spec = json.loads(tokenizer.to_str())
    used = {token for text in sample for token in tokenizer.encode(text).tokens}
    if unknown:
        used |= {piece for text in sample for piece in beginning(tokenizer.model, unknown, text)}
    kept = needed(spec, used)
    new = Tokenizer.from_str(json.dumps(cut(spec, kept)[0]))
    for text in EVERY_TEXT:
        tokens = tokenizer.encode(text).tokens
        if set(tokens) <= kept and (unknown not in tokens or text in sample):
            assert new.encode(text).tokens == tokens


@given(st.dictionaries(pieces, st.sampled_from([-1.0, -2.0, -3.0, -20.0])), st.lists(st.sampled_from(EVERY_TEXT)))
def test_unigram_models_cut_kept_texts_alike_whatever_their_scores(scores, sample):
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), *scores.items()], 0, False))
    assert_kept_texts_are_cut_alike(tokenizer, sample)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12), st.lists(st.sampled_from(EVERY_TEXT)))
def test_bpe_models_cut_kept_texts_alike_whatever_their_merges(choices, sample):
    names, merges = list(LETTERS), []
    for left, right in choices:
        merge = names[left % len(names)], names[right % len(names)]
        merges += [merge] if merge not in merges else []
        names += ["".join(merge)] if "".join(merge) not in names else []
    vocabulary = {name: number for number, name in enumerate(["<unk>", *names])}
    assert_kept_texts_are_cut_alike(Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>")), sample)


@given(st.sets(pieces), st.sets(pieces), st.lists(st.sampled_from(EVERY_TEXT)))
def test_word_piece_models_cut_kept_texts_alike_whatever_their_pieces(first, further, sample):
    names = ["[UNK]", *sorted(first), *(f"##{name}" for name in sorted(further))]
    vocabulary = {name: number for number, name in enumerate(names)}
    assert_kept_texts_are_cut_alike(Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]")), sample, "[UNK]")


def test_a_word_that_was_unknown_stays_so():
    """ "abc" begins with ab, behind which nothing fits. Without ab, which is in no text, a and ##bc would fit."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ab", "##bc", "xa", "##dd"]
    tokenizer = BertTokenizer(vocab={name: number for number, name in enumerate(names)})
    encoder = with_vocabulary(around("WordPiece"), tokenizer)
    new = trim(encoder, ["abc", "xabc", "a"])
    assert "##dd" not in new.model.tokenizer.get_vocab()
    assert cut_into(new, "abc") == ["[CLS]", "[UNK]", "[SEP]"]


def test_the_beginning_of_an_unknown_word_is_kept_though_no_text_shows_it():
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "ab", "##bc"]
    tokenizer = BertTokenizer(vocab={name: number for number, name in enumerate(names)})
    new = trim(with_vocabulary(around("WordPiece"), tokenizer), ["abc x"])
    assert set(new.model.tokenizer.get_vocab()) == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "ab"}
