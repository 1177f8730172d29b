"""`metasearch doctor`: what is installed here, and whether folders are sound."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _complete, _options

_MARKS = {"ok": "ok ", "note": "-  ", "bad": "bad"}


@click.command("doctor", short_help="What is installed here, and whether folders are sound.")
@click.argument(
    "folders",
    metavar="[FOLDER]...",
    nargs=-1,
    type=click.Path(path_type=Path),
    shell_complete=_complete.runs_and_models,
)
@_options.trust
@click.option("--json", "as_json", is_flag=True, help="Print the same as one JSON object on stdout.")
@click.pass_context
def command(ctx: click.Context, folders: Sequence[Path], trust_remote_code: bool, as_json: bool) -> None:
    """Print versions, processor and devices, optional parts and the cache; and say what each FOLDER is.

    Of a run, a distillation, a stage, a study or cell, an index, an encoder, an export to ONNX or a tokenizer every
    file is checked, and the command is named that goes on with what is not finished. A line that begins with `bad` is a
    problem, and the exit code is that of the worst one; a line with `-` is only to be known. Nothing is fetched or
    changed.

    \b
    Examples:
      metasearch doctor
      metasearch doctor runs/lareqa studies/lareqa
    """
    from metasearch.jobs.doctor.doctor import examine
    from metasearch.jobs.doctor.finding import worst

    sections = []
    for section in examine(folders, trust_remote_code):
        sections.append(section)
        if not as_json:
            click.echo(section.title)
            width = max((len(each.about) for each in section.findings), default=0)
            for each in section.findings:
                click.echo(f"  {_MARKS[each.state]}  {each.about.ljust(width)}  {each.found}")
    problems = sum(each.state == "bad" for section in sections for each in section.findings)
    if as_json:
        tree = {"sections": [dataclasses.asdict(each) for each in sections], "exit_code": worst(sections)}
        click.echo(json.dumps(tree, ensure_ascii=False))
    else:
        click.echo(f"problems: {problems or 'none'}")
    ctx.exit(worst(sections))
