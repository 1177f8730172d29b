"""`metasearch export`: write an encoder for use without metasearch."""

from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.errors import ConfigError


@click.command("export", short_help="Write an encoder for use without metasearch.")
@click.argument("encoder")
@click.option("--plain", is_flag=True, help="As a stock model of sentence-transformers, at full size.")
@_options.together(_options.trust)
@click.option("-o", "--output", type=_options.NewPath(), help="Folder to write; new or empty.")
def command(encoder: str, plain: bool, trust_remote_code: bool, output: Path | None) -> None:
    """Write ENCODER as a model that plain sentence-transformers loads.

    A compressed encoder is written at full size: its word table multiplied out, each layer as often as it runs. It
    computes the same and saves nothing. A stock encoder is written as it is.

    \b
    Examples:
      metasearch export runs/student/model --plain -o stock
    """
    from metasearch.compress.output import claim

    if not plain:
        raise ConfigError("say in which form to export: --plain")
    if output is None:
        raise ConfigError("say where to write with -o DIR")
    claim(output)

    from metasearch import run
    from metasearch.compress import job

    found = run.load_encoder(encoder, device="cpu", trust_remote_code=trust_remote_code)
    if not job.export(found, output):
        click.echo(f"metasearch: '{encoder}' is a stock model already; written as it is", err=True)
    click.echo(f"model: {output}")
