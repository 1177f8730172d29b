"""`metasearch.meta_train`: a user's own model and rows, in one call, by the code of `metasearch train`."""

import copy

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric

import metasearch as ms
from helpers.backbones import make
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.pipelines import meta_train
from metasearch.pipelines.meta_train import _loss_settings
from metasearch.runs.callbacks import Callback

CHAIN = "en_en -> en_de -> en_{de,en}"
SMALL = {
    **{"episodes.k": 4, "episodes.q": 2, "episodes.n_neg": 1, "options.inner_steps": 1},
    **{"budget.meta_train": 4, "budget.meta_valid": 0, "budget.epochs": 1, "budget.eval_every": 1},
}


@pytest.fixture(scope="module")
def data():
    return ms.load_labels(
        {"query": f"where is {i}", "document": f"{i} {word}", "query_language": "en", "document_language": language}
        for i in range(40)
        for language, word in (("en", "here"), ("de", "hier"))
    )


def model():
    """Return a model that does not end in unit vectors, as many of other people do not."""
    return SentenceTransformer(modules=list(make("bert", layers=1).model)[:2], device="cpu")


def weights(model):
    return {name: weight.clone() for name, weight in model.state_dict().items()}


@pytest.mark.slow
def test_a_model_is_trained_in_place_as_the_parts_of_train_would_and_can_be_saved(data, tmp_path):
    mine, reference = model(), ms.Encoder(model())
    before = weights(mine)
    how = {"recipe": "maml-align", "loss": ms.losses.Triplet(margin=0.2), "inner_lr": 1e-2}
    trained = ms.meta_train(mine, data, CHAIN, **how, settings=SMALL)
    assert trained is mine
    assert any(not torch.equal(before[name], weight) for name, weight in weights(mine).items())

    assigned = [*(f"{key}={value}" for key, value in SMALL.items()), "options.inner_lr=1e-2", "loss.margin=0.2"]
    recipe = ms.load_recipe("maml-align", assigned)
    ms.fit(ms.make_learner(recipe, reference), ms.make_benchmark(data, CHAIN), recipe)
    for name, weight in reference.model.state_dict().items():
        assert torch.equal(weight, mine.state_dict()[name]), name

    trained.save_pretrained(str(tmp_path / "out"))
    loaded = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert (loaded.encode(["where is 1"]) == trained.encode(["where is 1"])).all()


def test_by_default_a_learner_has_a_small_recipe_and_shows_its_steps(data, capsys, monkeypatch):
    def fit(learner, benchmark, recipe, callback, **how):
        assert (recipe.budget.meta_train + recipe.budget.meta_valid) * recipe.budget.epochs == 64
        callback.on_step(1, 16, "meta-train", {"task": 0.5})

    monkeypatch.setattr(meta_train, "fit", fit)
    ms.meta_train(model(), data, CHAIN)
    assert "meta_train, recipe maml-align-e5: 1/16 steps" in capsys.readouterr().err
    ms.meta_train(model(), data, CHAIN, callback=Callback())
    assert not capsys.readouterr().err


def test_an_encoder_leaves_the_modules_and_settings_of_its_model_alone():
    mine = model()
    mine.similarity_fn_name = "dot"
    encoder = ms.Encoder(mine)
    assert [type(module).__name__ for module in mine] == ["Transformer", "Pooling"]
    assert mine.similarity_fn_name == "dot"
    assert [type(module).__name__ for module in encoder.model] == ["Transformer", "Pooling", "Normalize"]
    assert encoder.model[0] is mine[0]


def test_a_benchmark_has_its_own_arrangements(data):
    benchmark = ms.make_benchmark(data, CHAIN, fold=1)
    assert ms.meta_train(model(), benchmark, settings=SMALL, max_steps=1)
    with pytest.raises(ms.MetasearchError, match="a benchmark already has arrangements and a fold"):
        ms.meta_train(model(), benchmark, CHAIN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arrangements": ""}, "rows need arrangements, such as 'en_en -> en_de"),
        ({"learner": "malm-align"}, "unknown learner 'malm-align'. Did you mean 'maml-align'"),
        ({"inner_rl": 1}, "options: inner_rl: unknown key. Did you mean 'inner_lr'"),
        ({"settings": {"budget.epoch": 1}}, "budget.epoch: unknown key. Did you mean 'epochs'"),
        ({"settings": {"neutralise.when": "after"}}, "recipe 'maml-align-e5': neutralise: only `metasearch train`"),
        ({"loss": "tripled"}, "unknown loss 'tripled'. Did you mean 'triplet'"),
        ({"loss": 3}, r"loss: int is not supported.*metasearch\.losses\.InfoNCE, metasearch\.losses\.Triplet"),
        ({"loss": ms.losses.CosineMSE()}, "the loss is taken of text1, text2; the examples have question, positive"),
        ({"settings": {"episodes.k": 4000}}, r"need .* questions .*Lower it with --set"),
    ],
)
def test_what_does_not_fit_is_said_before_training(data, arguments, message):
    given = {"arrangements": CHAIN, **arguments}
    with pytest.raises(ms.MetasearchError, match=message):
        ms.meta_train(model(), data, given.pop("arrangements"), **given)


def test_a_loss_of_the_users_own_is_taken(data):
    class Doubled(ms.losses.Triplet):
        def __call__(self, batch):
            calls.append(batch)
            return 2 * super().__call__(batch)

    calls = []
    ms.meta_train(model(), data, CHAIN, loss=Doubled(margin=0.2), settings=SMALL, max_steps=1)
    assert calls


@pytest.mark.parametrize(
    "loss",
    [
        lambda model: TripletLoss(model, TripletDistanceMetric.EUCLIDEAN, 0.3),
        lambda model: TripletLoss(model, TripletDistanceMetric.COSINE, 0.3),
        lambda model: MultipleNegativesRankingLoss(model, scale=10.0),
    ],
)
def test_a_loss_of_sentence_transformers_has_the_value_of_ours(loss):
    theirs = loss(model())
    generator = torch.Generator().manual_seed(0)
    columns = [torch.nn.functional.normalize(torch.randn(6, 8, generator=generator), dim=1) for _ in range(3)]
    settings = _loss_settings(theirs)
    names = ("question", "positive", "negative")
    # As many texts as examples: nothing is a second answer, which ours would not take for a wrong one.
    texts = {"question": torch.arange(6), "positive": torch.arange(6), "negative": torch.arange(6, 12)}
    ours = ms.algorithms.losses.base.losses_of(settings)[0]
    batch = EmbeddedSet(dict(zip(names, columns, strict=True)), texts)
    assert ours(batch).item() == pytest.approx(theirs.compute_loss_from_embeddings(columns, None).item(), abs=1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        lambda model: CosineSimilarityLoss(model),
        lambda model: TripletLoss(model, TripletDistanceMetric.MANHATTAN),
        lambda model: MultipleNegativesRankingLoss(model, directions=("query_to_doc", "doc_to_query")),
    ],
)
def test_another_loss_of_sentence_transformers_is_refused(loss, data):
    mine = model()
    before = copy.deepcopy(weights(mine))
    with pytest.raises(ms.MetasearchError, match=r"is not supported, .* TripletLoss"):
        ms.meta_train(mine, data, CHAIN, loss=loss(mine), settings=SMALL)
    assert all(torch.equal(weight, before[name]) for name, weight in weights(mine).items())
