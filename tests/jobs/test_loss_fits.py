"""A loss that does not fit a task is refused before weights are loaded and a run folder is made."""

import pytest

from metasearch.errors import ConfigError
from metasearch.jobs import train
from metasearch.spec.library import load_recipe
from metasearch.spec.run import RunConfig


@pytest.mark.parametrize(
    ("task", "loss", "fit"),
    [("demo", "cosine-mse", "infonce, triplet"), ("demo-sts", "infonce", "cosine-mse")],
)
def test_a_loss_of_other_examples_is_refused_before_anything_is_written(tmp_path, task, loss, fit):
    recipe = load_recipe("maml-tiny", [f"loss.name={loss}"])
    config = RunConfig(task=task, mode="mono-bi", encoder="no-such-encoder", recipe=recipe)
    with pytest.raises(ConfigError, match=f"Losses that fit: {fit}$"):
        train.begin(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
