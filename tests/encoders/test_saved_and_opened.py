"""An encoder that is saved and opened again is the same one: its vectors, its fingerprint and its lengths."""

import copy
from functools import partial

import numpy as np
import pytest
import torch

from helpers.backbones import POSITIONS, make
from helpers.onnx_extra import neutral
from helpers.tiers import others_slow
from helpers.tokenizers import TOKENIZERS, around
from metasearch.compress.student import make_student
from metasearch.config.roles import MaxLength
from metasearch.encoders.cross_encoder import open_reranker
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.int8 import write_stored
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.prompts import replace_prompts
from metasearch.errors import EncoderError

LENGTHS = MaxLength(question=9, candidate=33, text=17)
ROLES = ("question", "candidate", "text")
TEXTS = ["Where is the key?", "", "أين المفتاح؟", "กุญแจ 🗝️ κλειδί", "the key " * 20, "x"]


def stored(folder):
    write_stored(make("bert"), folder / "stored")
    return open_checkpoint(str(folder / "stored"))


def with_prompts(prompts, folder):
    encoder = make("xlm-roberta")
    replace_prompts(encoder.model, prompts)
    return encoder


MADE = {
    "bert": lambda folder: make("bert"),
    "mpnet": lambda folder: make("mpnet"),
    "compressed": lambda folder: make_student(make("bert"), bottleneck=4, recurrent=3),
    "int8": stored,
    "neutral": lambda folder: neutral(make("bert")),
    "modernbert": lambda folder: make("modernbert", dense=True),
    **{kind: lambda folder, kind=kind: around(kind) for kind in TOKENIZERS},
    "prompts": partial(with_prompts, {"question": "q: ", "candidate": "c: ", "text": "t: "}),
}


@pytest.mark.parametrize("kind", others_slow(MADE))
def test_an_encoder_that_is_saved_and_opened_is_the_same(tmp_path, kind):
    made = MADE[kind](tmp_path)
    encoder = Encoder(made.model, kind, LENGTHS)
    assert encoder.fingerprint == made.fingerprint
    encoder.save(tmp_path / "saved")
    opened = open_checkpoint(str(tmp_path / "saved"))
    assert opened.fingerprint == encoder.fingerprint == made.fingerprint
    for role in ROLES:
        assert opened.limit(role) == encoder.limit(role) == getattr(LENGTHS, role) <= POSITIONS
        np.testing.assert_array_equal(opened.encode(TEXTS, role), encoder.encode(TEXTS, role), err_msg=role)


@pytest.mark.parametrize("kind", ["bert", "int8"])
def test_the_files_of_an_encoder_do_not_depend_on_what_it_has_read(tmp_path, kind):
    """A tokenizer remembers how the last texts were cut; a run that was resumed has read other texts last."""
    made = MADE[kind](tmp_path)
    encoder = Encoder(made.model, "encoder", LENGTHS)
    encoder.save(tmp_path / "before")
    for role in ROLES:
        encoder.encode(TEXTS, role)
    encoder.save(tmp_path / "after")
    for path in (path for path in (tmp_path / "before").rglob("*") if path.is_file()):
        again = tmp_path / "after" / path.relative_to(tmp_path / "before")
        assert again.read_bytes() == path.read_bytes(), path.name


def test_a_checkpoint_in_half_precision_is_loaded_in_full(tmp_path):
    encoder = make("bert")
    copy.deepcopy(encoder.model).half().save_pretrained(str(tmp_path), create_model_card=False)
    opened = open_checkpoint(str(tmp_path))
    assert {parameter.dtype for parameter in opened.embedder.parameters()} == {torch.float32}
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), encoder.encode(TEXTS, "text"), atol=0.02)


def test_a_peft_adapter_is_refused(tmp_path):
    make("bert").save(tmp_path)
    (tmp_path / "checkpoint-5").mkdir()
    for folder in (tmp_path / "checkpoint-5", tmp_path):
        open_checkpoint(str(tmp_path))
        (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(EncoderError, match="is a PEFT adapter; merge it into its base"):
        open_checkpoint(str(tmp_path))


@pytest.mark.parametrize("open_folder", [open_checkpoint, partial(open_reranker, device="cpu")])
def test_a_wrong_path_names_the_folder_beside_it(open_folder, tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(EncoderError, match=r"modle': no such folder\. Did you mean 'model'\?$"):
        open_folder(str(tmp_path / "modle"))
