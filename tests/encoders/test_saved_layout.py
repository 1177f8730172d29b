"""A saved folder has the files that sentence-transformers 3.4.1 and model servers read, and release 6 as well."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

from helpers.backbones import HIDDEN, TEXTS, make
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint

STOCK = "sentence_transformers.models."


def read(folder, *names):
    return json.loads(folder.joinpath(*names).read_text(encoding="utf-8"))


def types(folder):
    return {each["path"]: each["type"] for each in read(folder, "modules.json")}


def assert_same(encoder, folder):
    plain = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    np.testing.assert_allclose(plain.encode(TEXTS), encoder.model.encode(TEXTS), atol=1e-6)


def test_every_file_has_the_keys_that_the_constructors_of_release_3_take(tmp_path):
    encoder = make("bert", dense=True)
    encoder.write(tmp_path)
    dense, last = (f"{number}_{name}" for number, name in ((2, "Dense"), (3, "Normalize")))
    assert types(tmp_path) == {
        "": f"{STOCK}Transformer", "1_Pooling": f"{STOCK}Pooling", dense: f"{STOCK}Dense", last: f"{STOCK}Normalize",
    }  # fmt: skip
    assert read(tmp_path, "sentence_bert_config.json") == {"max_seq_length": 25, "do_lower_case": False}
    off = ("cls_token", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    assert read(tmp_path, "1_Pooling", "config.json") == {
        "word_embedding_dimension": HIDDEN, "include_prompt": True, "pooling_mode_mean_tokens": True,
        **{f"pooling_mode_{name}": False for name in off},
    }  # fmt: skip
    assert read(tmp_path, dense, "config.json").keys() == {"in_features", "out_features", "bias", "activation_function"}
    tokenizer = read(tmp_path, "tokenizer_config.json")
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert_same(encoder, tmp_path)
    assert open_checkpoint(str(tmp_path)).fingerprint == encoder.fingerprint


def test_a_tokenizer_gives_the_columns_that_the_network_reads(tmp_path):
    make("mpnet").write(tmp_path)  # which has no token types
    assert read(tmp_path, "tokenizer_config.json")["model_input_names"] == ["input_ids", "attention_mask"]


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("1_Pooling", Pooling(HIDDEN, ("max", "cls"))),  # release 3 would concatenate cls first
        ("2_Dense", Dense(HIDDEN, HIDDEN, use_residual=True)),
    ],
)
def test_a_module_that_release_3_cannot_express_keeps_its_own_layout(tmp_path, path, module):
    pooling = module if isinstance(module, Pooling) else Pooling(HIDDEN)
    further = [] if isinstance(module, Pooling) else [module]
    model = SentenceTransformer(modules=[make("bert").model[0], pooling, *further, Normalize()], device="cpu")
    encoder = Encoder(model, "m")
    encoder.write(tmp_path)
    assert [place for place, kind in types(tmp_path).items() if not kind.startswith(STOCK)] == [path]
    assert_same(encoder, tmp_path)


def test_rotary_positions_keep_the_layout_of_release_6_and_the_length_of_each_role(tmp_path):
    encoder = make("modernbert")
    encoder.save(tmp_path)
    assert types(tmp_path)[""] == "sentence_transformers.base.modules.transformer.Transformer"
    assert read(tmp_path, "sentence_bert_config.json")["query_length"] == encoder.limit("question")
