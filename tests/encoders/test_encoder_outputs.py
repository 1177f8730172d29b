"""What is taken from an encoder: the unit vector, the pooled one, and what its embedding block gives."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from helpers.backbones import HIDDEN, LENGTHS, TEXTS, make
from metasearch.compress.student import make_student
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError

OUTPUTS = ("sentence", "pooled", "embedding")


@pytest.fixture(scope="module", params=["bert", "electra-narrow", "modernbert", "mpnet", "xlm-roberta"])
def encoder(request):
    return make(request.param)


@pytest.fixture(scope="module")
def bert():
    return make("bert")


def outputs(encoder, output, texts=TEXTS):
    with torch.no_grad():
        return encoder.embedder(encoder.features(texts, "text"), output)


def test_the_pooled_vector_is_the_mean_over_the_tokens_of_the_last_layer(encoder):
    for text, found in zip(TEXTS, outputs(encoder, "pooled"), strict=True):
        with torch.no_grad():
            states = encoder.model[0].auto_model(**encoder.features([text], "text")).last_hidden_state[0]
        torch.testing.assert_close(found, sum(states) / len(states), rtol=1e-4, atol=1e-5)


def test_the_pooled_vector_is_behind_every_module_but_the_one_that_normalises():
    encoder = make("bert", dense=True)
    dense = encoder.model[2].linear
    mean = outputs(make("bert"), "pooled")
    torch.testing.assert_close(outputs(encoder, "pooled"), torch.tanh(mean @ dense.weight.T + dense.bias).detach())
    assert [encoder.dimension(output) for output in (*OUTPUTS, "states")] == [5, 5, HIDDEN, HIDDEN]


def test_the_embedding_is_the_mean_of_what_the_first_layer_is_given_and_padding_is_no_token(encoder):
    features = encoder.features(TEXTS, "text")
    with torch.no_grad():
        given = encoder.model[0].auto_model(**features, output_hidden_states=True).hidden_states[0]
    mask = features["attention_mask"].bool()
    expected = torch.stack([rows[own].mean(0) for rows, own in zip(given, mask, strict=True)])
    torch.testing.assert_close(outputs(encoder, "embedding"), expected, rtol=1e-5, atol=1e-5)


def test_the_embedding_of_a_student_is_that_of_its_narrow_word_table(bert):
    student = make_student(bert, bottleneck=4, recurrent=2)
    assert student.dimension("embedding") == HIDDEN
    wide = Encoder(copy.deepcopy(bert.model), "wide", LENGTHS)
    words = wide.model[0].auto_model.embeddings.word_embeddings
    with torch.no_grad():
        words.weight.copy_(student.model[0].auto_model.get_input_embeddings()(torch.arange(words.num_embeddings)))
    torch.testing.assert_close(outputs(student, "embedding"), outputs(wide, "embedding"), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(outputs(student, "embedding"), outputs(bert, "embedding"), atol=1e-2)


def test_lengths_count_the_tokens_that_are_encoded(encoder):
    found = encoder.lengths([*TEXTS, TEXTS[0]], "text")
    mask = encoder.features([*TEXTS, TEXTS[0]], "text")["attention_mask"]
    assert found.dtype == np.int64
    assert found.tolist() == mask.sum(1).tolist()
    assert found[1] == 2  # of an empty text: the special tokens at both ends
    assert max(found) == LENGTHS.text  # a text of more tokens is cut
    assert encoder.lengths([], "text").tolist() == []


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_of_a_text_is_encoded_in_any_order_and_batch(bert, output):
    asked = [*TEXTS, *TEXTS[::-1]]
    found = bert.encode(asked, "text", output)
    assert found.dtype == np.float32
    assert found.shape == (len(asked), bert.dimension(output))
    if output == "sentence":
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.array_equal(found[: len(TEXTS)], found[: len(TEXTS) - 1 : -1])
    np.testing.assert_allclose(found[: len(TEXTS)], outputs(bert, output).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bert.encode(asked, "text", output, batch_size=2), found, rtol=1e-4, atol=1e-5)


def test_encoding_leaves_dropout_as_it_was_and_runs_without_it(bert):
    calm = bert.encode(TEXTS, "text")
    bert.embedder.train()
    try:
        assert np.array_equal(bert.encode(TEXTS, "text"), calm)
        assert bert.embedder.training
        assert all(module.training for module in bert.embedder.modules() if isinstance(module, nn.Dropout))
    finally:
        bert.embedder.eval()


def test_states_are_no_vectors_of_texts_and_an_unknown_output_is_refused():
    with pytest.raises(ValueError, match=r"^output states has a row for each token, not for each text$"):
        make("bert").encode(TEXTS, "text", "states")
    with pytest.raises(ConfigError, match=r"^unknown output 'tokens'\. Known: embedding, pooled, sentence, states\.$"):
        make("bert").encode(TEXTS, "text", "tokens")
