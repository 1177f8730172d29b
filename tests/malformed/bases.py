"""Sound folders that rows copy and spoil: each is made once."""

from pathlib import Path

from helpers.commands import metasearch
from helpers.configs import SHORT_RUN, train_one_step
from helpers.crossval import FLAGS, undisturbed
from metasearch.encoders.builtin import tiny
from metasearch.pipelines.train import TrainRun


def run(folder: Path) -> None:
    """Make a finished run of two steps."""
    TrainRun(SHORT_RUN, folder).execute()


def stopped(folder: Path) -> None:
    """Make a run that was stopped after a step, with a checkpoint."""
    train_one_step(SHORT_RUN, folder)


def study(folder: Path) -> None:
    """Make a finished study of two cells."""
    undisturbed(folder, *FLAGS, "--max-steps=2")


def encoder(folder: Path) -> None:
    """Make an encoder in a folder."""
    tiny.build().save(folder)


def int8(folder: Path) -> None:
    """Make an encoder with weights in 8 bits."""
    metasearch("export", "tiny", "--int8", "-o", folder)


BASES = {made.__name__: made for made in (run, stopped, study, encoder, int8)}
