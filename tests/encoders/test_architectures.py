"""Every architecture of transformers that reads texts works as an encoder, or is refused in one line."""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from helpers.architectures import NOT_TINY, POSITIONS, text_kinds, tokenizer, write_tiny
from helpers.gradients import Case
from helpers.tiers import others_slow
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.training.outer_gradients import OuterGradients

LONG = "the old key under the mat by the door of the old house " * 5
TEXTS = ["Where is the key?", LONG, "x", "", LONG[:60]]
QUICK = (
    "roberta",
    "ibert",
    "mpt",
    "canine",
    "t5",
    "bart",
    "llama",
    "xlnet",
    "mamba",
    "tipsv2_text_model",
    "fnet",
    "reformer",
)
"""Each with another way to place tokens."""
REFUSED = {
    "canine": "'canine' cannot read a text of 3 tokens",
    "fnet": "padding changes its embeddings",
    "reformer": "change from one call to the next",
}
LONGEST = {
    "roberta": POSITIONS - 2, "ibert": POSITIONS - 2, "longformer": POSITIONS - 2, "mpt": POSITIONS, "bart": POSITIONS,
    "led": POSITIONS,
}  # fmt: skip
"""The first three count from the padding token on, which is 1. The configuration of LED names two numbers."""

NOT_REOPENED = {"xlstm": "padding changes its embeddings"}
"""Kinds that read padding, which their first weights hide: it shows once they are trained."""

assert len(LONG) > 5 * POSITIONS


def step(encoder):
    """Take one step of MAML with the gradients of the product."""
    OuterGradients(encoder)(Case("maml").learn(encoder, inner_steps=1), Case("maml").episodes(1))
    with torch.no_grad():
        for weight in encoder.embedder.parameters():
            if weight.grad is not None:
                weight -= 0.05 * weight.grad.to_dense()


def check(folder, saved):
    """Encode, train, save and open again."""
    encoder = open_checkpoint(str(folder))
    save_and_open(encoder, trained_by(encoder), saved)


def trained_by(encoder):
    """Return the embeddings of texts after a step of training."""
    alone = np.concatenate([encoder.encode([text], "text") for text in TEXTS])
    together = encoder.encode(TEXTS, "text")
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(together, alone, atol=1e-4)
    step(encoder)
    trained = encoder.encode(TEXTS, "text")
    assert np.abs(trained - together).max() > 0
    return trained


def save_and_open(encoder, trained, saved):
    encoder.save(saved)
    again = open_checkpoint(str(saved))
    np.testing.assert_allclose(again.encode(TEXTS, "text"), trained, atol=1e-5)
    assert again.fingerprint == encoder.fingerprint
    assert again.input.longest == encoder.input.longest


@pytest.mark.parametrize("kind", others_slow(QUICK, quick=("roberta", "canine", "mamba", "bart")))
def test_an_architecture_works_or_is_refused_in_one_line(kind, tmp_path):
    write_tiny(kind, tmp_path / "tiny")
    if kind in REFUSED:
        with pytest.raises(EncoderError, match=rf"^[^\n]*{REFUSED[kind]}[^\n]*$"):
            check(tmp_path / "tiny", tmp_path / "saved")
    else:
        check(tmp_path / "tiny", tmp_path / "saved")


@pytest.mark.parametrize("kind", others_slow(LONGEST, quick=("roberta", "led")))
def test_a_text_is_cut_at_the_positions_of_the_network(kind, tmp_path):
    write_tiny(kind, tmp_path)
    encoder = open_checkpoint(str(tmp_path))
    assert encoder.input.longest == LONGEST[kind]
    assert encoder.lengths([LONG], "text").tolist() == [LONGEST[kind]]


def test_an_embedding_block_unlike_those_of_bert_has_no_output_embedding(tmp_path):
    write_tiny("layoutlm", tmp_path)
    with pytest.raises(EncoderError, match="'layoutlm' has no embedding block like BERT's"):
        open_checkpoint(str(tmp_path)).encode(["x"], "text", "embedding")


def test_the_encoder_of_a_translation_model_works_where_it_is_saved_alone(tmp_path):
    write_tiny("marian", tmp_path / "whole")
    with pytest.raises(EncoderError, match=r"^[^\n]*only the encoder of a 'marian'[^\n]*get_encoder\(\)[^\n]*$"):
        open_checkpoint(str(tmp_path / "whole"))
    AutoModel.from_pretrained(tmp_path / "whole").get_encoder().save_pretrained(tmp_path / "encoder")
    tokenizer().save_pretrained(tmp_path / "encoder")
    check(tmp_path / "encoder", tmp_path / "saved")


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", sorted(set(text_kinds()) - {*QUICK, *NOT_TINY}))
def test_every_architecture_works_or_is_refused_in_one_line(kind, tmp_path):
    write_tiny(kind, tmp_path / "tiny")
    refused = ""
    try:
        encoder = open_checkpoint(str(tmp_path / "tiny"))
        trained = trained_by(encoder)
    except EncoderError as error:
        refused = str(error)
    assert "\n" not in refused
    if refused:
        return
    # What was trained must not be lost.
    if kind in NOT_REOPENED:
        with pytest.raises(EncoderError, match=NOT_REOPENED[kind]):
            save_and_open(encoder, trained, tmp_path / "saved")
    else:
        save_and_open(encoder, trained, tmp_path / "saved")
