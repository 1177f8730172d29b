"""What commands print on stdout when a run is finished."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from metasearch.jobs.lifecycle import RunResult


def show_run(result: "RunResult", as_json: bool) -> None:
    """Print the report of a run and its folder, or its scores as one JSON object."""
    show("run", result.folder, result.report, result.rows, as_json)


def show(what: str, folder: Path, report: str, results: list[dict[str, Any]], as_json: bool) -> None:
    """Print a report and its folder, or results as one JSON object."""
    as_object = json.dumps({what: str(folder), "results": results}, ensure_ascii=False) if as_json else ""
    click.echo(as_object or f"{report}\n{what}: {folder}")
