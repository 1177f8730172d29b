"""Options that several commands share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from metasearch.cli import _complete
from metasearch.errors import nearest
from metasearch.spec.launchers import SETTINGS

ROLES = ("question", "candidate", "text")

F = TypeVar("F", bound=Callable[..., Any])

include = click.option(
    "--include",
    multiple=True,
    metavar="DIR",
    shell_complete=_complete.folders(),
    help="Folder with further tasks, modes/ and recipes/; repeatable.",
)
data = click.option(
    "--data",
    metavar="DIR",
    shell_complete=_complete.folders(),
    help="Folder of the task's files or a parent of it; by default METASEARCH_DATA.",
)
fold = click.option("--fold", type=click.IntRange(min=0), default=0, show_default=True, help="Fold to hold out.")
fold_seed = click.option(
    "--fold-seed", type=int, metavar="SEED", help="Shuffle articles or rows before cutting folds; not in the papers."
)
device = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    show_default=True,
    help="Where it runs.",
)


class Prompt(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions of click
    """A prompt as ROLE=TEXT."""

    name = "prompt"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return role and text."""
        role, equals, text = value.partition("=")
        if not equals:
            self.fail(f"'{value}': expected ROLE=TEXT, such as \"candidate=passage: \"", param, ctx)
        if role not in ROLES:
            self.fail(f"'{value}': no role '{role}'.{nearest(role, ROLES)}", param, ctx)
        return role, text


def _by_role(ctx: click.Context, param: click.Parameter, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the prompt of each role; a usage error where one has two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise click.BadParameter(
            f"a role has one prompt; {', '.join(role for role, _ in pairs)} were given", ctx, param
        )
    return found


prompts = click.option(
    "--prompt",
    "prompts",
    type=Prompt(),
    multiple=True,
    metavar="ROLE=TEXT",
    callback=_by_role,
    help="What is put before the texts of a role (question, candidate or text), in place of the encoder's own prompt; "
    "repeatable.",
)
trim = click.option(
    "--trim",
    metavar="task|LANGUAGES",
    callback=lambda _ctx, _param, value: tuple(value.split(",")) if value else (),
    help="Cut the encoder's vocabulary to the words of the task, or of some of its languages such as ar,de; vectors of "
    "their texts stay the same.",
)
trust = click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the encoder.")
SEEDS = click.IntRange(0, 2**63 - 1)
"""Seeds that every library takes."""


as_json = click.option("--json", "as_json", is_flag=True, help="Print scores as one JSON object on stdout.")
precision = click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", help="Of forward passes.")
checkpointing = click.option(
    "--checkpointing",
    type=click.Choice(["auto", "on", "texts", "off"]),
    default="auto",
    help="Recompute in the backward pass: layers (on; by default once a step runs out of memory), or a few texts at a "
    "time (texts), for sets of any size. Less memory, the same gradient, 1.5 to 1.8 times the CPU time in fp32.",
)
output = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Run folder; by default a new one below runs/."
)


def resume(what: str = "RUN") -> Callable[[F], F]:
    """Return the option `--resume`, with what it goes on with."""
    how = "Go on with it as it was configured, as `metasearch resume` does."
    return click.option(
        "--resume", type=click.Path(path_type=Path), shell_complete=_complete.runs, metavar=what, help=how
    )


def seed(help: str) -> Callable[[F], F]:
    """Return the option `--seed`, with what the seed is of."""
    return click.option("--seed", type=SEEDS, default=0, show_default=True, metavar="SEED", help=help)


def gradients(default: str | None = "fast", shown: str = "fast") -> Callable[[F], F]:
    """Return the option `--gradients`, `engine` of configurations, with its default and how that is shown."""
    return click.option(
        "--gradients",
        "engine",
        type=click.Choice(["fast", "reference"]),
        default=default,
        help="How gradients are computed: the fast way, or learn2learn's plain loop as reference, slower and the same "
        f"up to rounding. By default {shown}.",
    )


def jobs(own: str = "") -> Callable[[F], F]:
    """Return the option `--jobs`, with what is said of it beside."""
    how = f"Cells at a time{own}; by default 1, with another launcher as many as its cluster takes."
    return click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=how)


def options_group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options, listed in `--help` in this order."""

    def decorate(function: F) -> F:
        # As with stacked decorators, the last one is applied first, and click lists them from the top.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


encoder = options_group(
    click.option(
        "--encoder",
        shell_complete=_complete.encoders,
        help="Built-in name, local folder or hub name; by default the task's.",
    ),
    prompts,
    trim,
)
"""Which encoder is trained, and how it is loaded."""

moved_encoder = click.option(
    "--encoder",
    shell_complete=_complete.encoders,
    help="Where the encoder of the index is, if no longer where it was.",
)

distilled = options_group(
    click.option(
        "--teacher",
        metavar="ENCODER",
        shell_complete=_complete.encoders,
        help="Frozen encoder that knows the pivot language.",
    ),
    click.option(
        "--assistant",
        metavar="ENCODER",
        shell_complete=_complete.encoders,
        help="Encoder in full size that the student is made of.",
    ),
    click.option(
        "--student",
        metavar="ENCODER",
        shell_complete=_complete.encoders,
        help="What is trained, where it is not made of the assistant.",
    ),
    click.option("--corpus", multiple=True, metavar="PATH", help="Folder or file of translations; repeatable."),
    click.option("--scored", multiple=True, metavar="FILE", help="Sentence pairs with scores from 0 to 5; repeatable."),
    click.option("--entailment", multiple=True, metavar="FILE", help="SNLI or MultiNLI file; repeatable."),
)
"""Encoders and files of a distillation."""

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
        shell_complete=_complete.launcher_settings,
        help="What is asked of the launcher for each cell, such as cpus=4 or time=4:00:00; repeatable.",
    ),
)
"""Where the cells of a study run."""

run = options_group(precision, checkpointing, gradients(), device, data, include, trust, output, resume(), as_json)
"""How a run is done, where it goes, and what it prints."""

compared = options_group(
    click.argument(
        "paths",
        metavar="STUDY_OR_RUN...",
        nargs=-1,
        required=True,
        type=click.Path(path_type=Path),
        shell_complete=_complete.runs,
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
