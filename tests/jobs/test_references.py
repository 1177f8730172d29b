"""Data and encoders are named by one value each, which every configuration makes of its own flat keys."""

import pytest

from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
from metasearch.jobs.compose import load_encoder
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.library import load_distillation, load_recipe
from metasearch.spec.run import DataRef, EncoderRef, RunConfig, ScoreConfig
from metasearch.spec.study import StudyConfig

WHERE = {"data": "/data", "include": ("/more",)}
HOW = {"device": "cpu", "trust_remote_code": True}
DATA = DataRef(task="demo", fold=2, fold_seed=7, **WHERE)
ENCODER = EncoderRef(name="tiny", seed=5, **HOW)
FLAT = {"task": "demo", "encoder": "tiny", "fold_seed": 7, **WHERE, **HOW}


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(**FLAT, fold=2, seed=5, mode="trans", recipe=load_recipe("maml-tiny")),
        ScoreConfig(**FLAT, fold=2, seed=5),
    ],
)
def test_a_run_makes_both_of_its_keys(config):
    assert (DataRef.of(config), EncoderRef.of(config)) == (DATA, ENCODER)


def test_a_study_makes_them_with_a_fold_and_a_seed():
    config = StudyConfig(**FLAT, folds=(0, 2), seeds=(5,))
    assert (DataRef.of(config, fold=2), EncoderRef.of(config, seed=5)) == (DATA, ENCODER)


def test_a_distillation_makes_them_with_a_task_and_a_role():
    config = DistillConfig(recipe=load_distillation("ema-small"), student="tiny", seed=5, **WHERE, **HOW)
    assert DataRef.of(config, task="demo") == DataRef(task="demo", **WHERE)
    assert EncoderRef.of(config, name=config.named("student")) == ENCODER


def test_a_name_with_keys_opens_what_the_reference_opens():
    named, referred = (
        load_benchmark("demo", "trans", fold=1, fold_seed=3),
        load_benchmark(DataRef(task="demo", fold=1, fold_seed=3), "trans"),
    )
    assert named == referred
    assert named.fold == 1
    assert named.split != load_benchmark("demo").split
    seeded = [load_encoder(EncoderRef(name="tiny", device="cpu", seed=seed)).fingerprint for seed in (0, 1)]
    assert seeded == [load_encoder("tiny", device="cpu", seed=seed).fingerprint for seed in (0, 1)]
    assert seeded[0] != seeded[1]


@pytest.mark.parametrize(
    ("open_", "keys", "says"),
    [
        (load_benchmark, {"fodl": 1}, r"'demo': fodl: unknown key\. Did you mean 'fold'\?"),
        (load_benchmark, {"fold": -1}, "'demo': fold: .*greater than or equal to 0"),
        (load_encoder, {"device": "gpu"}, "'demo': device: .*'cpu'"),
    ],
)
def test_a_wrong_key_is_named(open_, keys, says):
    with pytest.raises(ConfigError, match=says):
        open_("demo", **keys)
