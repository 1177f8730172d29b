"""What commands print on stdout when a run is finished."""

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from metasearch.jobs.lifecycle import RunResult


def show(result: "RunResult", as_json: bool, what: str = "run") -> None:
    """Print the report of a run or study and its folder, or its scores as one JSON object."""
    if as_json:
        click.echo(json.dumps({what: str(result.folder), "results": result.rows}, ensure_ascii=False))
    else:
        click.echo(f"{result.report}\n{what}: {result.folder}")
