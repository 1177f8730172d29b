"""Trainings of an adapter: the encoder stays, its vectors are computed once, and the same seed gives the same bits."""

from functools import cache

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import metasearch as ms
from helpers.training import SMALL, small
from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import texts_of
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import PlanAdapter
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.pipelines import factory, frozen
from metasearch.pipelines.factory import check_fit
from metasearch.pipelines.frozen import encode_once, with_adapter


def tiny():
    return load_encoder("tiny", small("trans").task.max_length, device="cpu")


def trained(recipe="maml-adapter", mode="trans"):
    chosen = load_recipe(recipe, [*SMALL, "outer.lr=1e-2"])
    encoder = with_adapter(tiny(), True, [small(mode).data])
    factory.fit(factory.make_learner(chosen, encoder), small(mode), chosen)
    return encoder


@cache
def trained_once():
    """Return an encoder with a trained adapter, which nothing may change."""
    return trained()


@pytest.mark.slow
def test_only_the_adapter_learns_and_the_same_seed_gives_the_same_bits():
    first, second = trained_once(), trained()
    assert first.base.fingerprint == tiny().fingerprint
    assert first.adapter.delta.count_nonzero() > 0
    assert torch.equal(first.adapter.delta, second.adapter.delta)


@pytest.mark.parametrize("learner", ["fine-tune", "maml", "maml-align", "meta-sgd", "reptile"])
def test_every_learner_has_a_recipe_of_an_adapter(learner):
    recipe = load_recipe(f"{learner}-adapter")
    assert (recipe.learner, recipe.adapter) == (learner, "matrix")


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
    first = trained_once()
    first.save(tmp_path / "model")
    opened = load_encoder(str(tmp_path / "model"), identify=True, device="cpu")
    again = with_adapter(opened, True, [small("trans").split.dev])
    assert again.origin == opened.fingerprint
    torch.testing.assert_close(again.adapter.delta, first.adapter.delta, rtol=0, atol=1e-6)
    assert with_adapter(tiny(), False, []).fingerprint == tiny().fingerprint


def test_the_maps_of_an_index_are_not_trained():
    base, size = tiny(), tiny().dimension()
    maps = PlanAdapter(torch.eye(size), torch.zeros(size), torch.zeros(size), torch.eye(size))
    with pytest.raises(ConfigError, match="has the maps of an index; train the encoder of that index"):
        with_adapter(AdaptedEncoder(base, maps), True, [])


@pytest.mark.slow
def test_meta_train_returns_a_new_model_with_the_adapter_behind_the_old_modules():
    model, settings = tiny().model, dict(each.split("=") for each in SMALL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = ms.meta_train(model, small("trans"), learner="maml", recipe="maml-adapter", settings=settings)
    assert isinstance(found, SentenceTransformer)
    assert len(found) == len(model) + 1
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_a_projection_after_an_adapter_is_refused():
    recipe = load_recipe("maml-adapter", ["neutralise=after"])
    with pytest.raises(ConfigError, match="an adapter is the last module; use neutralise=before"):
        check_fit(recipe, load_benchmark("demo", "trans"), "float32")
