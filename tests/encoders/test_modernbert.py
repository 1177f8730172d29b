"""ModernBERT, the family of mmBERT: rotary positions, layers of two kinds of attention, and what is not possible."""

import numpy as np
import pytest
import torch
from transformers.models.modernbert import modeling_modernbert

from benchmarks.mini.vocabulary import train_tokenizer, with_vocabulary
from helpers.backbones import LENGTHS, LOCAL_AND_GLOBAL, TEXTS, make
from metasearch.compress import onnx_folder
from metasearch.compress.thinning import thin
from metasearch.encoders.open import open_checkpoint
from metasearch.training.packing.probe import packing_plan

LOCAL, GLOBAL = LOCAL_AND_GLOBAL


def config_of(encoder):
    return encoder.model[0].auto_model.config


@pytest.mark.parametrize("layers", [(1, 4), (1, 2, 3, 5), 4])
def test_layers_that_stay_keep_their_kind_of_attention_in_the_file(layers, tmp_path):
    """The number of a layer says what it is no more: of layers 1, 2, 3 and 5 the last is local, and would be global."""
    shallow = thin(make("modernbert"), layers)
    chosen = (1, 3, 4, 6) if layers == 4 else layers  # 1 + round(i · 5 / 3)
    assert config_of(shallow).layer_types == [(LOCAL, GLOBAL)[(number - 1) % 2] for number in chosen]
    shallow.save(tmp_path / "shallow")
    again = open_checkpoint(str(tmp_path / "shallow"), LENGTHS)
    np.testing.assert_array_equal(again.encode(TEXTS, "text"), shallow.encode(TEXTS, "text"))


def test_another_vocabulary_renumbers_all_special_tokens_of_the_configuration():
    encoder = make("modernbert")
    config, tokenizer = config_of(encoder), encoder.model.tokenizer
    config.cls_token_id, config.sep_token_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    new = with_vocabulary(encoder, train_tokenizer(["the key is under the mat"], 294))
    names = ("cls", "pad", "sep", "bos", "eos")
    before, after = ([getattr(config_of(each), f"{name}_token_id") for name in names] for each in (encoder, new))
    # `<s>`, `<pad>` and `</s>`, in the order of XLM-R
    assert before[:3] == [tokenizer.cls_token_id, tokenizer.pad_token_id, tokenizer.sep_token_id] != after[:3]
    assert after == [0, 1, 2, 0, 2]


def test_a_release_of_transformers_that_computes_attention_by_itself_gets_padded_texts(monkeypatch):
    encoder = make("modernbert")
    assert packing_plan(encoder).packs
    own = modeling_modernbert.ALL_ATTENTION_FUNCTIONS["sdpa"]
    monkeypatch.setattr(modeling_modernbert.ALL_ATTENTION_FUNCTIONS, "get_interface", lambda name, default: own)
    assert not packing_plan(encoder).packs


class Same:
    """A graph that gives the encoder's own vectors and notes how long the texts were."""

    def __init__(self, encoder):
        self.encoder, self.encode, self.longest = encoder, encoder.encode, 0

    def run(self, columns):
        self.longest = max(self.longest, columns["input_ids"].shape[1])
        with torch.no_grad():
            return self.encoder.embedder({name: torch.from_numpy(each) for name, each in columns.items()}).numpy()


@pytest.mark.slow
def test_a_graph_is_checked_up_to_512_tokens_as_no_table_of_positions_ends():
    encoder = make("modernbert", layers=1)
    config_of(encoder).max_position_embeddings = 8192
    exported = Same(encoder)
    assert onnx_folder.difference(encoder, exported) < 1e-5
    assert exported.longest == 512
