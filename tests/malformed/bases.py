"""Sound folders that rows copy and spoil: each is made once."""

from helpers.commands import metasearch
from helpers.configs import SHORT_RUN, train_one_step
from helpers.crossval import FLAGS, undisturbed
from metasearch.encoders.builtin import tiny
from metasearch.pipelines.train import TrainRun

BASES = {
    "run": lambda folder: TrainRun(SHORT_RUN, folder).execute(),
    "stopped": lambda folder: train_one_step(SHORT_RUN, folder),
    "study": lambda folder: undisturbed(folder, *FLAGS, "--max-steps=2"),
    "encoder": lambda folder: tiny.build().save(folder),
    "int8": lambda folder: metasearch("export", "tiny", "--int8", "-o", folder),
}
"""A finished run of two steps, a run with a checkpoint, a finished study of two cells, and encoders."""
