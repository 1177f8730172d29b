"""Sound folders that rows copy and spoil: each is made once."""

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.configs import SHORT_RUN, through
from helpers.crossval import FLAGS, inline
from metasearch.cli import main
from metasearch.encoders.builtin import tiny
from metasearch.errors import Interrupted
from metasearch.pipelines.train import TrainRun
from metasearch.runs.callbacks import Callback


class _Stopping(Callback):
    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def run(folder: Path) -> None:
    """Make a finished run of two steps."""
    TrainRun(SHORT_RUN, folder).execute()


def stopped(folder: Path) -> None:
    """Make a run that was stopped after a step, with a checkpoint."""
    with pytest.raises(Interrupted):
        TrainRun(SHORT_RUN, folder).execute(through(_Stopping()))


def study(folder: Path) -> None:
    """Make a finished study of two cells."""
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        _command("crossval", *FLAGS, "--max-steps=2", "-o", folder)


def encoder(folder: Path) -> None:
    """Make an encoder in a folder."""
    tiny.build().save(folder)


def int8(folder: Path) -> None:
    """Make an encoder with weights in 8 bits."""
    _command("export", "tiny", "--int8", "-o", folder)


def static(folder: Path) -> None:
    """Make an encoder of word vectors without layers."""
    _command("compress", "tiny", "--static", "words", "-o", folder)


BASES = {made.__name__: made for made in (run, stopped, study, encoder, int8, static)}


def _command(*args: object) -> None:
    ran = CliRunner().invoke(main, [str(arg) for arg in args])
    assert ran.exit_code == 0, ran.output
