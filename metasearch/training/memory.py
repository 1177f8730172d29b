"""One log line with the sizes that the memory of a training depends on."""

import logging

from metasearch.training.optimizer import MOMENTS
from metasearch.training.trainer import Trainer

log = logging.getLogger(__name__)


def log_memory(trainer: Trainer) -> None:
    """Log the size of weights, optimiser state and first meta-batch, all processes together.

    Activations grow with the tokens of the batch. Nothing is refused: a step that does not fit the memory is taken
    again with less (`metasearch.training.outer_gradients`).
    """
    if not trainer.schedule.total:
        return
    phase, position = trainer.schedule.at(0)
    episodes = phase.episodes.batch(position, trainer.schedule.batch)
    sets = [examples for episode in episodes for examples in episode.sets]
    texts = sorted({text for examples in sets for example in examples.examples for text in example.texts})
    encoder = trainer.learner.encoder
    trained = sum(parameter.nbytes for parameter in trainer.parameters.values())
    weights = encoder.size + sum(tensor.nbytes for tensor in trainer.learner.state().values())
    log.info(
        "memory: weights %s, optimiser %s, batch %d texts of %d tokens, on %s",
        format_bytes(weights),
        format_bytes(MOMENTS[trainer.settings.optimizer] * trained),
        len(texts),
        encoder.lengths(texts, "text").sum(),
        encoder.device,
    )


def format_bytes(size: int) -> str:
    """Return a number of bytes in MiB or GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
