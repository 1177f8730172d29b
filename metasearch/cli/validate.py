"""`metasearch validate`: check a task from its declaration to an embedded episode."""

from collections.abc import Sequence

import click

from metasearch.cli import _complete, _options


@_options.command("validate")
@click.argument("task", shell_complete=_complete.declared("task"))
@_options.options_group(_options.data, _options.include)
def command(task: str, data: str | None, include: Sequence[str]) -> None:
    """Load TASK, resolve its names, read its data, cut its folds, and draw and embed an episode of every mode.

    \b
    Example:
      metasearch validate demo
    """
    from metasearch.pipelines.validate import validate

    for line in validate(task, data=data, include=include):
        click.echo(f"ok  {line}")
