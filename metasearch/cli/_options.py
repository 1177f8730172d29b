"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

include = click.option(
    "--include", multiple=True, metavar="DIR", help="Folder with further tasks, modes/ and recipes/; repeatable."
)
data = click.option(
    "--data", metavar="DIR", help="Folder of the task's files or a parent of it; by default METASEARCH_DATA."
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
trust = click.option(
    "--trust-remote-code",
    is_flag=True,
    help="Run Python code that comes with the encoder.",
)
SEEDS = click.IntRange(0, 2**63 - 1)
"""Seeds that every library takes."""


class NewPath(click.Path):
    """A path to write to; an empty one, such as an unset variable gives, is not taken for the folder one is in."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "":
            self.fail("-o is empty", param, ctx)
        return super().convert(value, param, ctx)


as_json = click.option("--json", "as_json", is_flag=True, help="Print scores as one JSON object on stdout.")


def seed(help: str) -> Callable[[F], F]:
    """Return the option `--seed`, with what the seed is of."""
    return click.option("--seed", type=SEEDS, default=0, show_default=True, metavar="SEED", help=help)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options, listed in `--help` in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
