"""`metasearch doctor`: report the environment and check folders."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _options

_MARKS = {"ok": "ok ", "note": "-  ", "bad": "bad"}


@_options.command("doctor")
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
@_options.trust
@_options.as_json("all findings")
@click.pass_context
def command(ctx: click.Context, folders: Sequence[Path], trust_remote_code: bool, as_json: bool) -> None:
    """Print versions, devices, data and the cache, and check each FOLDER.

    FOLDER is a run, a distillation, a study, an index, an encoder, an export to ONNX, a tokenizer or a prepared corpus.
    A line that begins with `bad` is a problem, and the exit code is that of the worst one; a line with `-` is no
    problem. Nothing is fetched or changed.

    \b
    Examples:
      metasearch doctor
      metasearch doctor runs/lareqa studies/lareqa
    """
    from metasearch.pipelines.environment import environment
    from metasearch.runs.findings import Section

    sections: list[Section] = []

    def show(section: Section) -> None:
        sections.append(section)
        if not as_json:
            click.echo(section.title)
            width = max((len(each.about) for each in section.findings), default=0)
            for each in section.findings:
                click.echo(f"  {_MARKS[each.state]}  {each.about.ljust(width)}  {each.found}")

    for section in environment():
        show(section)
    if folders:  # what reads them imports torch, which may be missing
        from metasearch.pipelines.doctor import examine_folder

        for folder in folders:
            show(examine_folder(folder, trust_remote_code))
    codes = [each.code for section in sections for each in section.findings if each.state == "bad"]
    if as_json:
        tree = {"sections": [dataclasses.asdict(each) for each in sections], "exit_code": max(codes, default=0)}
        click.echo(json.dumps(tree, ensure_ascii=False))
    else:
        click.echo(f"problems: {len(codes) or 'none'}")
    ctx.exit(max(codes, default=0))
