"""Data and encoders are opened by a name with settings, or by the section of a run that holds them."""

from helpers.configs import nested
from metasearch.config.run import DataConfig, EncoderConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.factory import load_encoder

FLAT = {"task": "demo", "encoder": "tiny", "fold_seed": 7, "data": "/data", "include": ("/more",), "device": "cpu"}


def test_a_study_makes_the_data_of_each_fold():
    config = nested(StudyConfig, **FLAT, folds=(0, 2), seeds=(5,))
    assert config.on(2) == DataConfig(task="demo", fold=2, fold_seed=7, data="/data", include=("/more",))


def test_a_name_with_settings_opens_what_the_section_opens():
    named, section = (
        load_benchmark("demo", "trans", fold=1, fold_seed=3),
        load_benchmark(DataConfig(task="demo", fold=1, fold_seed=3), "trans"),
    )
    assert named == section
    assert named.fold == 1
    assert named.split != load_benchmark("demo").split
    opened = [load_encoder(EncoderConfig(name="tiny"), device="cpu", seed=seed).fingerprint for seed in (0, 1)]
    assert opened == [load_encoder("tiny", device="cpu", seed=seed).fingerprint for seed in (0, 1)]
    assert opened[0] != opened[1]
