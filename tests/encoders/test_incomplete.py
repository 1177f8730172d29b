"""Checkpoints without some of their files: a line says what is missing and assumed, or an error names it."""

import json
import logging
import shutil

import numpy as np
import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from helpers.backbones import LENGTHS, TEXTS, make
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError

MEANS = "assumed: embeddings are means of tokens, without prompts"


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    """A checkpoint with a pooling of first tokens, a linear map and prompts, of which nothing is missing."""
    encoder = make("bert", dense=True, layers=1)
    encoder.model[1].pooling_mode = "cls"
    encoder.model.prompts = {"query": "q: ", "document": "d: "}
    path = tmp_path_factory.mktemp("whole") / "model"
    encoder.save(path)
    return path


@pytest.fixture
def folder(whole_folder, tmp_path):
    return shutil.copytree(whole_folder, tmp_path / "model")


def change(path, function):
    """Replace a JSON file by what a function makes of it."""
    path.write_text(json.dumps(function(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")


def lines(caplog):
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "metasearch.encoders.open"]


def test_a_plain_transformers_checkpoint_gives_means_of_tokens_and_a_line_says_so(tmp_path, caplog):
    made = make("bert")
    made.model[0].auto_model.save_pretrained(tmp_path)
    made.model.tokenizer.save_pretrained(tmp_path)
    np.testing.assert_allclose(
        open_checkpoint(str(tmp_path), LENGTHS).encode(TEXTS, "text"), made.encode(TEXTS, "text"), atol=1e-6
    )
    assert lines(caplog) == [("WARNING", f"encoder '{tmp_path}': it has no modules.json; {MEANS}")]


def test_a_plain_decoder_gives_the_last_token_and_a_line_says_so(tmp_path, caplog):
    tokenizer = make("bert").model.tokenizer
    GPT2LMHeadModel(
        GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=40)
    ).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    caplog.set_level(logging.INFO)
    encoder = open_checkpoint(str(tmp_path), LENGTHS)
    pooled = {"mean": "means of tokens", "lasttoken": "states of the last token"}[encoder.model[1].pooling_mode]
    assert f"assumed: embeddings are {pooled}, without prompts" in lines(caplog)[-1][1]


@pytest.mark.parametrize("kind", ["CrossEncoder", "MultiVectorEncoder"])
def test_a_model_of_another_kind_is_named(folder, caplog, kind):
    change(folder / "config_sentence_transformers.json", lambda settings: {**settings, "model_type": kind})
    open_checkpoint(str(folder))
    (line,) = lines(caplog)
    assert line == (
        "WARNING", f"encoder '{folder}': it was saved as a {kind}, of which the transformer alone is used; {MEANS}"
    )  # fmt: skip


def module(place, kind):
    """Return what gives a module in `modules.json` another class."""
    return lambda modules: [{**each, "type": kind} if i == place else each for i, each in enumerate(modules)]


def test_settings_of_a_module_that_are_missing_are_named(folder):
    name = "1_Pooling"
    (folder / name / "config.json").unlink()
    with pytest.raises(EncoderError, match=rf"cannot be loaded: {folder / name / 'config.json'} is missing$"):
        open_checkpoint(str(folder))


def test_of_a_whole_checkpoint_nothing_is_assumed(folder, caplog):
    caplog.set_level(logging.INFO)
    open_checkpoint(str(folder))
    assert lines(caplog) == []


def test_code_that_stands_in_the_folder_asks_for_trust(folder):
    change(folder / "modules.json", module(1, "own_pooling.Weighted"))
    (folder / "own_pooling.py").touch()
    with pytest.raises(EncoderError, match="comes with its own Python code; pass --trust-remote-code"):
        open_checkpoint(str(folder))


@pytest.mark.parametrize("trust", [False, True])
def test_a_module_of_a_package_that_is_not_installed_is_named(folder, trust):
    change(folder / "modules.json", module(1, "not_installed.models.Weighted"))
    says = "module 'not_installed.models.Weighted' of its modules.json is of the package 'not_installed', which is not"
    with pytest.raises(EncoderError, match=says):
        open_checkpoint(str(folder), trust_remote_code=trust)


@pytest.mark.parametrize(
    ("trust", "says"),
    [
        (False, "'numpy.linalg.Weighted' of its modules.json is of the package 'numpy', .* --trust-remote-code only"),
        (True, 'Module "numpy.linalg" does not define a "Weighted"'),
    ],
)
def test_a_module_of_an_installed_package_asks_for_trust(trust, says, folder):
    change(folder / "modules.json", module(1, "numpy.linalg.Weighted"))
    with pytest.raises(EncoderError, match=rf"^encoder '{folder}' cannot be loaded: [^\n]*{says}[^\n]*$"):
        open_checkpoint(str(folder), trust_remote_code=trust)


def test_a_file_that_lists_no_modules_is_named(folder):
    for content in ("[]", "{", "{}", "null", '["a"]', '[{"type": "", "path": ""}]', '[{"type": 5}]'):
        (folder / "modules.json").write_text(content)
        with pytest.raises(EncoderError, match=rf"{folder}/modules.json: expected a JSON list of modules[^\n]*$"):
            open_checkpoint(str(folder))


def test_a_damaged_file_of_weights_is_named(folder):
    path = folder / "2_Dense" / "model.safetensors"
    whole = path.read_bytes()
    for size in (0, 5, -1):
        path.write_bytes(whole[:size])
        with pytest.raises(EncoderError, match=rf"cannot be loaded: {path}: [^\n]+$"):
            open_checkpoint(str(folder))
