"""What the scripts share as commands: errors in one line, and metasearch's own command line as a subprocess."""

import shlex
import subprocess
import sys
from typing import Any

import click

from metasearch.errors import MetasearchError

_STDERR = 2
"""File descriptor of this process's stderr: stdout is left to the tables of a script."""


class Command(click.Command):
    """A command whose errors are one line and an exit code, as those of `metasearch` are."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except MetasearchError as error:
            failure = click.ClickException(str(error))
            failure.exit_code = error.exit_code  # type: ignore[misc]  # click declares it per class
            raise failure from error


def metasearch(*arguments: object) -> None:
    """Run a command of metasearch; where it fails, end with its exit code: it has said why on stderr."""
    module("metasearch", *arguments)


def module(name: str, *arguments: object) -> None:
    """Do the same with a module of Python, such as a script here."""
    words = [str(argument) for argument in arguments]
    click.echo(f"$ python -m {name} {shlex.join(words)}", err=True)
    done = subprocess.run([sys.executable, "-m", name, *words], stdout=_STDERR, check=False)
    if done.returncode:
        raise click.exceptions.Exit(done.returncode)
