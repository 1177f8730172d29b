"""A distillation for vectors that may be cut, as a user runs it: from the recipe's options to an export."""

import json

import pytest

from helpers.parallel import distill, flags, save_assistant, small, write_corpus


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    write_corpus(folder / "corpus", names=("en-de",))
    save_assistant(folder / "assistant", layers=1)
    return folder


@pytest.fixture(scope="module")
def run(place):
    options = small("assistant", options__dimensions="[8, 32]")
    distill(*flags(place, "--stages=1", *options, steps=2), "-o", place / "run")
    return place / "run"


@pytest.mark.slow
def test_the_model_says_to_what_its_vectors_may_be_cut(run):
    for folder in (run / "model", run / "1-assistant" / "model"):
        settings = json.loads((folder / "config_sentence_transformers.json").read_text())
        assert settings["matryoshka_dimensions"] == [8, 32]
    assert "first 8 or 32 dimensions" in (run / "model" / "README.md").read_text()
