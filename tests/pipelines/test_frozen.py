"""Trainings of an adapter: the encoder stays, its vectors are computed once, and the same seed gives the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import metasearch as ms
from helpers.training import SMALL, small
from metasearch.config.library import load_recipe
from metasearch.config.recipe import RecipeAdapter
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import texts_of
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import build_adapter
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.pipelines import factory, frozen
from metasearch.pipelines.compatibility import check_fit
from metasearch.pipelines.frozen import encode_once, with_adapter

MATRIX = RecipeAdapter()


def tiny():
    return load_encoder("tiny", small("trans").task.max_length, device="cpu")


def trained(recipe="maml-adapter", mode="trans"):
    chosen = load_recipe(recipe, [*SMALL, "outer.lr=1e-2"])
    encoder = with_adapter(tiny(), chosen.adapter, [small(mode).data])
    factory.fit(factory.make_learner(chosen, encoder), small(mode), chosen)
    return encoder


@pytest.mark.slow
def test_only_the_adapter_learns_and_the_same_seed_gives_the_same_bits():
    first, second = trained(), trained()
    assert first.base.fingerprint == tiny().fingerprint
    assert first.adapter.delta.count_nonzero() > 0
    assert torch.equal(first.adapter.delta, second.adapter.delta)


@pytest.mark.parametrize("learner", ["fine-tune", "maml", "maml-align", "meta-sgd", "reptile"])
def test_every_learner_has_a_recipe_of_an_adapter(learner):
    recipe = load_recipe(f"{learner}-adapter")
    assert (recipe.learner, recipe.adapter) == (learner, MATRIX)


def test_texts_are_encoded_once_and_runs_of_a_study_share_their_vectors(tmp_path, monkeypatch):
    encoder, benchmark = tiny(), small("trans")
    known = encode_once(encoder, [benchmark.data], tmp_path)
    asked = [each.text for each in texts_of(benchmark.split.test) if each.role == "question"]
    expected, none = encoder.encode(asked, "question"), encoder.encode([], "question")
    encoded = []
    monkeypatch.setattr(encoder, "encode", lambda texts, role: encoded.extend(texts) or none)
    for vectors in (known, encode_once(encoder, [benchmark.data], tmp_path)):
        np.testing.assert_allclose(vectors.encode(asked, "question"), expected, rtol=0, atol=1e-6)
    assert not encoded
    monkeypatch.undo()
    before = len([*tmp_path.glob("*/vectors.npy")])
    monkeypatch.setattr(frozen, "versions", lambda: {"torch": "another release, whose last bits may differ"})
    encode_once(encoder, [benchmark.data], tmp_path)
    assert len([*tmp_path.glob("*/vectors.npy")]) == 2 * before > 0


@pytest.mark.slow
def test_an_encoder_that_has_an_adapter_keeps_it_and_learns_on(tmp_path):
    first = trained()
    first.save(tmp_path / "model")
    opened = load_encoder(str(tmp_path / "model"), identify=True, device="cpu")
    again = with_adapter(opened, MATRIX, [small("trans").data])
    assert again.origin == opened.fingerprint
    torch.testing.assert_close(again.adapter.delta, first.adapter.delta, rtol=0, atol=1e-6)
    assert with_adapter(tiny(), None, [small("trans").data]).fingerprint == tiny().fingerprint


def test_a_saved_adapter_learns_on_in_its_own_form_and_rank_alone():
    test = small("trans").split.test
    data = [replace(test, questions=test.questions[:1], candidates=test.candidates[:1])]
    low_rank, base = RecipeAdapter(form="low-rank", rank=4), tiny()
    encoder = AdaptedEncoder(base, build_adapter("low-rank", base.dimension(), rank=4))
    assert with_adapter(encoder, low_rank, data).adapter is encoder.adapter
    for other, said in (
        (MATRIX, r"adapter\.form=matrix: encoder .* has an adapter: low-rank"),
        (RecipeAdapter(form="low-rank", rank=5), r"adapter\.rank=5: encoder .* has an adapter of rank 4"),
    ):
        with pytest.raises(ConfigError, match=said):
            with_adapter(encoder, other, data)


@pytest.mark.slow
def test_meta_train_returns_a_new_model_with_the_adapter_behind_the_old_modules():
    model, settings = tiny().model, dict(each.split("=") for each in SMALL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = ms.meta_train(model, small("trans"), learner="maml", recipe="maml-adapter", settings=settings)
    assert isinstance(found, SentenceTransformer)
    assert len(found) == len(model) + 1
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(
    ("task", "mode", "assignment", "said"),
    [
        ("demo", "trans", "neutralise=after", "an adapter is the last module; use neutralise=before"),
        ("demo-sts", "mono-mono", "adapter=rotation", "has pairs, whose cosine no rotation of both changes"),
    ],
)
def test_an_adapter_that_cannot_be_learned_is_refused(task, mode, assignment, said):
    with pytest.raises(ConfigError, match=said):
        check_fit(load_recipe("maml-adapter", [assignment]), load_benchmark(task, mode), "float32")
