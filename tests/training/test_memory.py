"""The log line on memory: sizes by arithmetic, once for a training, whatever memory there is."""

import logging

import pytest

from helpers.training import start
from metasearch.pipelines import factory


def line_of(caplog, *changes, **more):
    learner, benchmark, recipe = start("fine-tune-tiny", "trans", *changes)
    caplog.set_level(logging.INFO)
    caplog.clear()
    trainer = factory.build_trainer(learner, benchmark, recipe, max_steps=1, **more)
    (line,) = [message for message in caplog.messages if message.startswith("memory: ")]
    return line, trainer


@pytest.mark.parametrize(("optimizer", "moments"), [("adamw", 2), ("lars", 1)])
def test_a_training_logs_weights_optimiser_and_the_texts_of_its_first_batch(caplog, optimizer, moments):
    line, trainer = line_of(caplog, f"outer.optimizer={optimizer}")
    size = 4 * sum(weight.numel() for weight in trainer.learner.encoder.embedder.parameters())
    episodes = trainer.gradient().episodes
    texts = {text for each in episodes for s in each.sets for example in s.examples for text in example.texts}
    tokens = trainer.learner.encoder.lengths([*texts], "text").sum()
    assert line == (
        f"memory: weights {size / 2**20:.0f} MiB, optimiser {moments * size / 2**20:.0f} MiB, "
        f"batch {len(texts)} texts of {tokens} tokens, on cpu"
    )
