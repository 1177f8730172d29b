"""Static encoders, whose vectors are means of word vectors: in every form those of plain sentence-transformers."""

import copy

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from metasearch.compress.student import make_static
from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.static_input import _Sums
from metasearch.errors import EncoderError
from metasearch.training.packing.encoder import PackedEncoder

TEXTS = ["Where is the key?", "", "أين المفتاح؟", "🗝️ key", "a mat", "the old key by the door", "x"]


@pytest.fixture(scope="module")
def static():
    return make_static(tiny.build(MaxLength(question=30, candidate=30, text=30)), "words", name="static")


@pytest.fixture(scope="module")
def plain(static, tmp_path_factory):
    """What plain sentence-transformers makes of the folder that is saved."""
    folder = tmp_path_factory.mktemp("static") / "model"
    static.save(folder)
    return SentenceTransformer(str(folder), device="cpu")


def tokens(encoder, text):
    return encoder.model.tokenizer.encode(text, add_special_tokens=False).ids


def test_a_vector_is_the_mean_of_the_rows_of_the_words_without_special_tokens(static):
    table = static.model[0].embedding.weight.detach().double().numpy()
    for text in TEXTS[:1] + TEXTS[2:]:
        mean = table[tokens(static, text)].mean(0)
        np.testing.assert_allclose(static.encode([text], "text", "pooled")[0], mean, atol=1e-6)
        np.testing.assert_allclose(static.encode([text], "text")[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_padded_packed_and_saved_forms_have_the_vectors_of_plain_sentence_transformers(static, plain):
    assert isinstance(plain[0], StaticEmbedding)
    expected = plain.encode(TEXTS)
    np.testing.assert_allclose(static.encode(TEXTS, "text"), expected, atol=1e-6)
    batch = PackedEncoder(static).lay_out([[("text", text) for text in TEXTS]])
    assert batch.packed.plan.packs
    (texts,) = batch.texts
    assert texts.tokens == sum(len(tokens(static, text)) for text in TEXTS)  # no padding
    (packed,) = batch.packed.each([None], lambda network, _: network.run(batch.cut(batch.packed.weights), texts))
    np.testing.assert_allclose(packed.detach().numpy(), expected, atol=1e-6)


def test_a_slice_of_the_table_has_the_words_of_the_texts_and_no_others(static):
    batch = PackedEncoder(static).lay_out([[("text", "the key")], [("text", "a mat")]])
    assert batch.rows.tolist() == sorted({*tokens(static, "the key"), *tokens(static, "a mat")})


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_text_is_cut_at_the_length_of_its_role_whatever_its_tokenizer_cuts_at(static, side):
    long = "a mat " + "the key " * 40 + "by the door"
    cut = Encoder(copy.deepcopy(static.model), "cut", static.max_length)
    cut.model.tokenizer.no_truncation()
    whole = tokens(cut, long)
    cut.model.tokenizer.enable_truncation(7, direction=side)
    assert cut.limit("text") == 30
    assert cut.tokens([long], "text")[0][0].tolist() == (whole[:30] if side == "right" else whole[-30:])
    assert len(tokens(cut, long)) == 7  # as before


def test_the_sum_of_rows_can_be_differentiated_twice():
    table = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    words, starts = torch.tensor([4, 0, 0, 2]), torch.tensor([0, 1, 1])

    def sums(weights):
        return _Sums.apply(weights, words, starts)

    torch.testing.assert_close(sums(table), torch.stack([table[4], 0 * table[0], 2 * table[0] + table[2]]))
    assert torch.autograd.gradcheck(sums, table)
    assert torch.autograd.gradgradcheck(lambda weights: sums(weights).pow(3), table)


@pytest.mark.parametrize("output", ["embedding", "states"])
def test_outputs_of_an_embedding_block_or_of_layers_are_refused(static, output):
    with pytest.raises(EncoderError, match="a static encoder is a table of word vectors without layers"):
        static.encode(["key"], "text", output)
    with pytest.raises(EncoderError, match="not embedding or states"):
        static.dimension(output)


def test_weights_in_half_precision_are_opened_in_float32(static, tmp_path):
    half = copy.deepcopy(static.model).half()
    half.save_pretrained(str(tmp_path / "half"), create_model_card=False)
    opened = open_checkpoint(str(tmp_path / "half"))
    assert opened.model[0].embedding.weight.dtype == torch.float32
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), static.encode(TEXTS, "text"), atol=2e-3)
