"""Static students: what their rows are, and what `metasearch compress --static` says."""

import copy

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional as F

from helpers.backbones import HIDDEN, make
from helpers.commands import metasearch
from helpers.tiers import others_slow
from metasearch.compress import student
from metasearch.compress.student import make_static
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError, DataError

KINDS = ("xlm-roberta", "mpnet", "modernbert")
TEXTS = ["Where is the key?", "the key", "a mat by the old door"]


def table(encoder):
    return encoder.model[0].embedding.weight.detach()


def test_a_row_of_words_is_the_embedding_block_at_the_mean_of_the_first_positions(monkeypatch):
    monkeypatch.setattr(student, "POSITIONS", 3)
    encoder = make("xlm-roberta", layers=1)
    block = encoder.model[0].auto_model.embeddings
    # Padding is token 0, so that the first position is row 1.
    position = block.position_embeddings.weight[1:4].mean(0)
    summed = block.word_embeddings.weight[7] + position + block.token_type_embeddings.weight[0]
    expected = F.layer_norm(summed, (HIDDEN,), block.LayerNorm.weight, block.LayerNorm.bias, block.LayerNorm.eps)
    torch.testing.assert_close(table(make_static(encoder, "words"))[7], expected.detach())


def test_a_row_of_tokens_is_what_the_encoder_gives_for_the_word_alone():
    encoder = make("bert", layers=1, dense=True)
    (word,) = encoder.model.tokenizer("a", add_special_tokens=False)["input_ids"]
    alone = encoder.encode(["a"], "text", "pooled")[0]
    np.testing.assert_allclose(table(make_static(encoder, "tokens"))[word], alone, atol=1e-5)


@pytest.mark.parametrize("kind", others_slow(KINDS))
def test_every_kind_of_encoder_has_a_static_student_and_stays_as_it_is(kind):
    encoder = make(kind, layers=1)
    before = encoder.fingerprint
    for rows in ("words", "tokens"):
        student = make_static(encoder, rows)
        assert table(student).shape == (len(encoder.model.tokenizer), HIDDEN)
        assert table(student).std(0).mean() > 0.01
    assert encoder.fingerprint == before


def test_what_all_texts_have_in_common_is_taken_from_each_row():
    whole = make_static(tiny.build())
    student = make_static(tiny.build(), texts=TEXTS)
    ids = [number for text in TEXTS for number in whole.model.tokenizer.encode(text, add_special_tokens=False).ids]
    torch.testing.assert_close(table(student), table(whole) - table(whole)[ids].mean(0))
    with pytest.raises(DataError, match="no texts to count words in"):
        make_static(tiny.build(), texts=[""])


def test_fewer_dimensions_keep_the_dot_products_of_rows_that_need_no_more():
    whole = make_static(tiny.build())
    flat = copy.deepcopy(whole)
    with torch.no_grad():
        basis = torch.linalg.qr(torch.randn(tiny.DIMENSIONS, 5)).Q
        flat.model[0].embedding.weight.copy_(table(whole) @ basis @ basis.T)
    narrow = make_static(flat, dimensions=5)
    assert narrow.dimension() == 5
    np.testing.assert_allclose(
        narrow.encode(TEXTS, "text") @ narrow.encode(TEXTS, "text").T,
        flat.encode(TEXTS, "text") @ flat.encode(TEXTS, "text").T,
        atol=1e-5,
    )
    with pytest.raises(ConfigError, match=f"dimensions {tiny.DIMENSIONS}: word vectors have {tiny.DIMENSIONS}"):
        make_static(whole, dimensions=tiny.DIMENSIONS)


def test_compress_writes_a_static_student_that_is_exported_trimmed_and_cut_again(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    given = ["--static", "words", "--trim-vocab", texts, "--texts", texts, "--dimensions", 16]
    printed = metasearch("compress", "tiny", *given, "-o", tmp_path / "student").stdout
    model = SentenceTransformer(str(tmp_path / "student"), device="cpu")
    words = len(model.tokenizer.get_vocab())
    assert model[0].embedding.weight.shape == (words, 16)
    assert words < 6000
    assert f"{words * 16:,}" in printed
    sizes = metasearch("compress", "tiny", *given[:4], "--dimensions", 16, "--sizes-only").stdout
    assert f"{words * 16:,}" in sizes
    metasearch("export", tmp_path / "student", "--sentence-transformers", "-o", tmp_path / "plain")
    again = SentenceTransformer(str(tmp_path / "plain"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), model.encode(TEXTS))
    metasearch("compress", tmp_path / "student", "--static", "words", "--dimensions", 4, "-o", tmp_path / "narrow")
    assert SentenceTransformer(str(tmp_path / "narrow"), device="cpu").encode(TEXTS).shape == (3, 4)
    for flags in (["--bottleneck", 4], ["--trim-vocab", texts]):
        refused = metasearch("compress", tmp_path / "student", *flags, "-o", tmp_path / "no", code=6).stderr
        assert "a static encoder has no transformer to compress" in refused
