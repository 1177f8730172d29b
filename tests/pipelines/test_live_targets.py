"""Targets by token, which are computed with each batch: rows of the encoder itself, text after text."""

import numpy as np
import pytest
import torch

from metasearch.algorithms.base import TargetSpec
from metasearch.config.recipe import MaxLength
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.target_cache import LiveTokens, comparable

# Not by length, and more than one part of them: a part has at least 256 tokens.
TEXTS = [f"{'the old house by the sea ' * (1 + i % 4)}{i}" for i in range(50)]


@pytest.fixture(scope="module")
def encoder():
    return tiny.build(MaxLength(text=32))


def own(encoder, text, output):
    with torch.no_grad():
        return encoder.embedder(encoder.features([text], "text"), output).numpy()


@pytest.mark.parametrize(("output", "threads"), [("tokens", 1), ("states", 2)])
def test_rows_are_those_of_each_text_alone_in_the_order_of_the_texts(encoder, output, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = LiveTokens(encoder, output).vectors(TEXTS)
    finally:
        torch.set_num_threads(before)
    expected = [own(encoder, text, output) for text in TEXTS]
    assert [len(rows) for rows in expected] == encoder.lengths(TEXTS, "text").tolist()
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("output", ["tokens", "states"])
def test_texts_after_another_prompt_have_other_tokens(encoder, output):
    asks = tiny.build(MaxLength(text=32))
    asks.model.prompts = dict.fromkeys(["query", "document", "passage"], "query: ")
    asks.model.default_prompt_name = "query"
    comparable(encoder, encoder, TargetSpec(output, translations=True))
    comparable(asks, encoder, TargetSpec("sentence", translations=True))
    with pytest.raises(ConfigError, match=f"output {output}: .* puts 'query: ' before texts and .* ''; they must be"):
        comparable(asks, encoder, TargetSpec(output, translations=True))
