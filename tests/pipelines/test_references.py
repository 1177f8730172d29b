"""Data and encoders are opened by a name with settings, or by the section of a run that holds them."""

import pytest

from helpers.configs import nested
from metasearch.config.run import DataConfig, EncoderConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError
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


@pytest.mark.parametrize(
    ("open_", "settings", "says"),
    [
        (load_benchmark, {"fodl": 1}, r"'demo': fodl: unknown key\. Did you mean 'fold'\?"),
        (load_benchmark, {"fold": -1}, "'demo': fold: .*greater than or equal to 0"),
        (load_encoder, {"trust": True}, r"'demo': trust: unknown key\."),
        (load_encoder, {"device": "gpu"}, "gpu"),
    ],
)
def test_a_wrong_setting_is_named(open_, settings, says):
    with pytest.raises(ConfigError, match=says):
        open_("demo", **settings)
