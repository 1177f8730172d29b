"""Compressed encoders: the factorised word table, recurrent layers, and a model of transformers made of both."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, ViTConfig

from helpers.backbones import LENGTHS, TEXTS, make
from metasearch.compress.student import make_student
from metasearch.compress.thinning import thin
from metasearch.encoders.compressed import CompressedConfig, FactorisedEmbedding
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import ConfigError, EncoderError

WORDS, WIDTH = 20, 6


@pytest.fixture(scope="module")
def assistant():
    return make("xlm-roberta")


@pytest.fixture(scope="module")
def student(assistant):
    return make_student(assistant, bottleneck=4, recurrent=3)


def transformer_of(encoder):
    return encoder.model[0].auto_model


def test_the_vector_of_a_word_is_its_row_times_the_projection():
    embedding = FactorisedEmbedding(WORDS, 3, WIDTH).double()
    ids = torch.tensor([[4, 4, 1], [19, 0, 7]])
    table, projection = embedding.table.weight, embedding.projection.weight
    expected = [[sum(table[i, k] * projection[:, k] for k in range(3)) for i in row] for row in ids.tolist()]
    torch.testing.assert_close(embedding(ids), torch.stack([torch.stack(row) for row in expected]))
    assert sum(p.numel() for p in embedding.parameters()) == WORDS * 3 + 3 * WIDTH


def test_an_approximation_with_weights_has_the_least_weighted_squares():
    weights = torch.tensor([1.0 + i % 4 for i in range(WORDS)], dtype=torch.float64)
    table = torch.randn(WORDS, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    embedding = FactorisedEmbedding(WORDS, 3, WIDTH).double()
    embedding.approximate(table, weights)
    # Eckart and Young for diag(√w)·T, whose best approximation has the same columns.
    root = weights.sqrt()[:, None].numpy()
    u, s, v = np.linalg.svd(root * table.numpy(), full_matrices=False)
    np.testing.assert_allclose(root * embedding.multiplied_out().numpy(), u[:, :3] * s[:3] @ v[:3], atol=1e-12)


@pytest.mark.parametrize(("order", "same"), [([0, 1, 2, 0, 1, 2], True), ([0, 0, 1, 1, 2, 2], False)])
def test_a_student_runs_its_layers_in_blocks(student, order, same):
    backbone = transformer_of(student).backbone
    ids = torch.arange(4, 11)[None]
    hidden = backbone.embeddings(input_ids=ids)
    for i in order:
        hidden = backbone.encoder.layer[i](hidden)
    assert torch.allclose(hidden, backbone(ids).last_hidden_state, atol=1e-6) == same


def test_a_student_has_the_assistants_first_layers_and_embedding_block(assistant, student):
    source, target = transformer_of(assistant).state_dict(), transformer_of(student).backbone.state_dict()
    new = {f"embeddings.word_embeddings.{name}.weight" for name in ("table", "projection")}
    assert target.keys() - source.keys() == new
    assert all(torch.equal(source[key], target[key]) for key in target.keys() - new)
    assert {key.split(".")[2] for key in target if key.startswith("encoder.layer")} == {"0", "1", "2"}


def test_the_same_seed_gives_the_same_student_and_leaves_the_global_generator(assistant):
    before = torch.get_rng_state()
    one, again, other = (make_student(assistant, 4, 3, initial="random", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    tables = [transformer_of(made).get_input_embeddings().table.weight for made in (one, again, other)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_further_modules_prompts_and_lengths_are_the_assistants():
    assistant = make("bert", dense=True)
    made = make_student(assistant, 4, 3)
    assert [type(module) for module in made.model] == [type(module) for module in assistant.model]
    assert torch.equal(made.model[2].linear.weight, assistant.model[2].linear.weight)
    assert made.model[2].linear.weight is not assistant.model[2].linear.weight
    assert (made.model.prompts, made.max_length) == (assistant.model.prompts, assistant.max_length)
    assert made.model.max_seq_length == assistant.model.max_seq_length == 25
    assert made.name == "bert-b4-r3"
    assert made.encode(["key"], "text").shape == (1, 5)


@pytest.mark.parametrize(("recurrent", "repeats", "depth"), [(3, None, 6), (6, None, 6), (3, 1, 3), (4, 2, 8)])
def test_hidden_states_and_attentions_are_those_of_all_layers_that_run(assistant, recurrent, repeats, depth):
    model = transformer_of(make_student(assistant, 4, recurrent, repeats))
    model.set_attn_implementation("eager")
    found = model(torch.arange(3, 9)[None], output_hidden_states=True, output_attentions=True)
    assert (len(found.hidden_states), len(found.attentions)) == (depth + 1, depth)
    assert torch.equal(found.hidden_states[-1], found.last_hidden_state)
    assert model.config.num_hidden_layers == depth


def test_a_saved_student_is_the_same_to_the_bit_and_holds_each_weight_once(student, tmp_path):
    folder = tmp_path / "student"
    student.model.save_pretrained(str(folder), create_model_card=False)
    opened = open_checkpoint(str(folder), LENGTHS)
    np.testing.assert_array_equal(opened.encode(TEXTS, "text"), student.encode(TEXTS, "text"))
    weights = 4 * student.parameter_count
    assert weights < (folder / "model.safetensors").stat().st_size < weights + 10_000
    _, report = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]  # noqa: PT018


def test_a_student_or_a_kind_that_cannot_be_compressed_is_refused(student):
    for again, *settings in ((make_student, 4, 3), (thin, 2)):
        with pytest.raises(EncoderError, match="already compressed"):
            again(student, *settings)
    with pytest.raises(EncoderError, match=r"kind 'vit' cannot be compressed; supported are bert, .*xlm-roberta"):
        CompressedConfig(backbone=ViTConfig())


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"recurrent": 3, "repeats": 9}, "repeats 9: .*at most 4 times as many may run; .*a number from 1 to 8"),
        ({"recurrent": 3, "repeats": 0}, "repeats 0: .*a number from 1 to 8"),
        ({"repeats": 2}, "repeats 2: needs the number of recurrent layers"),
        ({"bottleneck": "4"}, "bottleneck '4': expected a whole number"),
        ({"recurrent": 3.0}, "recurrent 3.0: expected a whole number"),
        ({"recurrent": True}, "recurrent True: expected a whole number"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_with_those_that_do(assistant, sizes, says):
    with pytest.raises(ConfigError, match=f"^{says}$"):
        make_student(assistant, **sizes)


def test_a_damaged_configuration_of_a_student_is_refused_with_its_reason(student, tmp_path):
    student.model.save_pretrained(str(tmp_path), create_model_card=False)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"bottleneck": 4', '"bottleneck": 99'))
    with pytest.raises(EncoderError, match="cannot be loaded: bottleneck 99"):
        open_checkpoint(str(tmp_path))
