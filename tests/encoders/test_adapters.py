"""PEFT adapters are merged into their base when an encoder is opened, or refused."""

import logging
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from helpers.backbones import LENGTHS, TEXTS, make
from metasearch.algorithms.fine_tune import FineTune
from metasearch.config.recipe import Loss
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed: pip install peft accelerate")
_LAYERS = ["query", "value", "dense"]


def adapter(folder, kind="LoraConfig", **settings):
    """Write a base model, and an adapter of it whose weights are drawn; return the model with both."""
    import peft

    make("bert").save(folder / "base")
    model = SentenceTransformer(str(folder / "base"), device="cpu")
    model.add_adapter(getattr(peft, kind)(**settings))
    torch.manual_seed(0)
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(str(folder / "adapter"), create_model_card=False)
    return model.eval()


@needs_peft
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("LoraConfig", {"r": 4, "lora_alpha": 64, "target_modules": _LAYERS}),
        ("LoraConfig", {"r": 4, "target_modules": ["word_embeddings", "query"], "bias": "all"}),
        ("LoraConfig", {"r": 4, "use_dora": True, "target_modules": _LAYERS, "modules_to_save": ["LayerNorm"]}),
        ("IA3Config", {"target_modules": _LAYERS, "feedforward_modules": ["dense"]}),
    ],
    ids=["lora", "lora-words-and-biases", "dora-and-whole-modules", "ia3"],
)
def test_an_adapter_is_merged_and_its_base_needed_no_more(tmp_path, caplog, kind, settings):
    with_adapter = adapter(tmp_path, kind, **settings)
    expected = with_adapter.encode(TEXTS)
    with caplog.at_level(logging.INFO):
        opened = open_checkpoint(str(tmp_path / "adapter"), LENGTHS)
    (line,) = [line for line in caplog.messages if "adapter" in line and "merged" in line]
    assert f"is merged into '{tmp_path / 'base'}'" in line
    np.testing.assert_allclose(opened.encode(TEXTS, "text"), expected, atol=1e-5)
    base = make("bert")
    assert not np.allclose(expected, base.encode(TEXTS, "text"), atol=1e-2)  # the adapter does something
    shapes = {name: weight.shape for name, weight in base.model.named_parameters() if "pooler" not in name}
    merged = {name: weight for name, weight in opened.model.named_parameters() if "pooler" not in name}
    assert {name: weight.shape for name, weight in merged.items()} == shapes
    assert all(weight.requires_grad for weight in merged.values())
    opened.save(tmp_path / "saved")
    shutil.rmtree(tmp_path / "base")
    shutil.rmtree(tmp_path / "adapter")
    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(saved.encode(TEXTS), expected, atol=1e-5)


@needs_peft
@pytest.mark.parametrize("kind", ["PromptTuningConfig", "PrefixTuningConfig"])
def test_an_adapter_that_adds_inputs_is_refused(tmp_path, kind):
    import peft

    base = make("bert")
    base.save(tmp_path / "base")
    config = getattr(peft, kind)(task_type="FEATURE_EXTRACTION", num_virtual_tokens=4)
    transformer = SentenceTransformer(str(tmp_path / "base"), device="cpu")[0].auto_model
    peft.get_peft_model(transformer, config).save_pretrained(str(tmp_path / "adapter"))
    base.model.tokenizer.save_pretrained(str(tmp_path / "adapter"))
    with pytest.raises(EncoderError, match=r"cannot be merged: it adds inputs .* name the base model, or train"):
        open_checkpoint(str(tmp_path / "adapter"))


@needs_peft
def test_an_adapter_whose_effect_depends_on_the_text_is_refused(tmp_path):
    adapter(tmp_path, r=4, target_modules=["query"], alora_invocation_tokens=[5, 6])
    with pytest.raises(EncoderError, match="cannot be merged"):
        open_checkpoint(str(tmp_path / "adapter"))


@needs_peft
@pytest.mark.parametrize("part", ["base", "adapter"])
def test_missing_weights_are_refused_on_either_side(tmp_path, part):
    adapter(tmp_path, r=4, target_modules=_LAYERS)
    (path,) = (tmp_path / part).glob("*.safetensors")
    weights = {name: weight for name, weight in load_file(path).items() if "layer.3." not in name}
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(EncoderError, match=r"does not fit its base|weights missing, the first '\S+layer\.3\."):
        open_checkpoint(str(tmp_path / "adapter"))


def test_an_encoder_whose_weights_are_all_frozen_cannot_be_trained():
    encoder = make("bert")
    encoder.model.requires_grad_(False)
    with pytest.raises(EncoderError, match="all weights are frozen"):
        FineTune(encoder, Loss(name="triplet"), FineTune.Options())


@needs_peft
def test_a_base_that_is_gone_is_named(tmp_path):
    adapter(tmp_path, r=4, target_modules=_LAYERS)
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(EncoderError, match=rf"is a PEFT adapter of '{tmp_path / 'base'}', .* hf download"):
        open_checkpoint(str(tmp_path / "adapter"))


@needs_peft
def test_a_model_with_an_adapter_that_was_made_in_python_is_refused(tmp_path):
    with pytest.raises(EncoderError, match="an unmerged PEFT adapter; save the model and open the folder"):
        Encoder(adapter(tmp_path, r=4, target_modules=_LAYERS), "adapted")


@pytest.mark.skipif(find_spec("peft") is not None, reason="peft is installed")
def test_without_peft_an_adapter_is_refused_with_the_command_that_installs_it(tmp_path):
    make("bert").save(tmp_path)
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "base"}')
    with pytest.raises(EncoderError, match=r"has a PEFT adapter, .*: pip install peft"):
        open_checkpoint(str(tmp_path))
