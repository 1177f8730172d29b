"""`--checkpointing` of the commands that train: the same model, and a configuration that keeps the choice."""

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file

from metasearch.cli import main
from metasearch.config import yaml

TRAIN = [
    "train",
    "--mode",
    "trans",
    "--recipe",
    "maml-tiny",
    "--encoder",
    "tiny",
    "--device",
    "cpu",
    "--max-steps",
    "2",
]


def metasearch(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.slow
def test_a_run_has_the_same_model_with_and_without_and_keeps_the_choice(tmp_path):
    models = []
    for choice in ("layers", "off"):
        metasearch(*TRAIN, "--checkpointing", choice, "-o", tmp_path / choice)
        assert yaml.tree(tmp_path / choice / "config.yaml")["config"]["compute"]["checkpointing"] == choice
        models.append(load_file(tmp_path / choice / "model" / "model.safetensors"))
    layers, off = models
    assert layers.keys() == off.keys()
    assert all(weight.equal(off[name]) for name, weight in layers.items())
