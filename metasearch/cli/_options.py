"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from metasearch.cli import _complete
from metasearch.cli._settings_options import options_group, setting, settings
from metasearch.config.launchers import SETTINGS
from metasearch.config.run import ComputeConfig, DataConfig, EncoderConfig, Folders

F = TypeVar("F", bound=Callable[..., Any])

include, data = setting(Folders, "include"), setting(Folders, "data")
fold, fold_seed = setting(DataConfig, "fold"), setting(DataConfig, "fold_seed")
device, precision = setting(ComputeConfig, "device"), setting(ComputeConfig, "precision")
prompts, trust = setting(EncoderConfig, "prompts"), setting(EncoderConfig, "trust_remote_code")
SEEDS = click.IntRange(0, 2**63 - 1)
"""Seeds that every library takes."""


as_json = click.option("--json", "as_json", is_flag=True, help="Print scores as one JSON object on stdout.")
output = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Run folder; by default a new one below runs/."
)


def resume(what: str = "RUN") -> Callable[[F], F]:
    """Return the option `--resume`, with what it goes on with."""
    how = "Go on with it as it was configured, as `metasearch resume` does."
    return click.option("--resume", type=click.Path(path_type=Path), metavar=what, help=how)


def seed(help: str) -> Callable[[F], F]:
    """Return the option `--seed`, with what the seed is of."""
    return click.option("--seed", type=SEEDS, default=0, show_default=True, metavar="SEED", help=help)


def jobs(own: str = "") -> Callable[[F], F]:
    """Return the option `--jobs`, with what is said of it beside."""
    how = f"Cells at a time{own}; by default 1, with another launcher as many as its cluster takes."
    return click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=how)


encoder = settings(EncoderConfig)
"""Which encoder, and how its checkpoint is read."""

moved_encoder = click.option(
    "--encoder",
    shell_complete=_complete.encoders,
    help="Where the encoder of the index is, if no longer where it was.",
)

launcher = options_group(
    click.option(
        "--launcher",
        type=click.Choice(list(SETTINGS)),
        help="Where cells run: on this machine, in Slurm or on a Ray cluster; by default where they did before.",
    ),
    click.option(
        "--launcher-set",
        "launcher_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="What is asked of the launcher for each cell, such as cpus=4 or time=4:00:00; repeatable.",
    ),
)
"""Where the cells of a study run."""

run = options_group(output, resume(), as_json)
"""Where a run goes, and what it prints."""

compared = options_group(
    click.argument(
        "paths",
        metavar="STUDY_OR_RUN...",
        nargs=-1,
        required=True,
        type=click.Path(path_type=Path),
    ),
    click.option(
        "--baseline", metavar="LABEL", help="Learner to compare with, as the table names it; by default zero-shot."
    ),
    click.option("--measure", metavar="MEASURE", help="Such as map@20 or pearson; by default the task's first."),
    click.option(
        "--task",
        metavar="TASK",
        shell_complete=_complete.declared("task"),
        help="Which task, where the runs have scores on several.",
    ),
    click.option(
        "--level", type=float, default=0.95, show_default=True, help="Of the intervals; 1 - level is the tests' α."
    ),
    click.option("--resamples", type=int, default=10_000, show_default=True, help="Of the bootstrap; at least 100."),
    seed("Of the resamples; the same seed gives the same intervals."),
    click.option("--any-version", is_flag=True, help="Put together also what different versions of metasearch made."),
)
"""What is compared with what, and how."""
