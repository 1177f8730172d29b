"""`metasearch export`: write an encoder for use without metasearch, or in a quarter of its size."""

from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.errors import ConfigError


@click.command("export", short_help="Write an encoder as a stock model, or in int8.")
@click.argument("encoder")
@click.option("--plain", is_flag=True, help="As a stock model of sentence-transformers, at full size.")
@click.option("--int8", is_flag=True, help="In eight bits a weight: a quarter of the size; float32 again when loaded.")
@_options.options_group(_options.trust)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write; new or empty.")
def command(encoder: str, plain: bool, int8: bool, trust_remote_code: bool, output: Path | None) -> None:
    """Write ENCODER in another form.

    \b
    --plain   what plain sentence-transformers loads, without metasearch. A
              compressed encoder is written at full size: its word table
              multiplied out, each layer as often as it runs. It computes the
              same and saves nothing. A stock encoder is written as it is.
    --int8    any encoder, with each matrix as eight-bit integers and a step
              for each row or column. Plain sentence-transformers loads it
              after `import metasearch.encoders`, in float32; trained and
              saved it is an ordinary encoder again.

    \b
    Examples:
      metasearch export runs/student/model --plain -o stock
      metasearch export runs/student/model --int8 -o small
    """
    from metasearch.compress.output import claim

    if plain and int8:
        raise ConfigError("--plain and --int8 are two forms; say one of them")
    if not (plain or int8):
        raise ConfigError("say in which form to export: --plain or --int8")
    if output is None:
        raise ConfigError("say where to write with -o DIR")
    # Before torch is imported: a folder that is not empty is told at once.
    claim(output)

    from metasearch.jobs import compose, compress

    loaded = compose.load_encoder(encoder, device="cpu", trust_remote_code=trust_remote_code)
    if int8:
        compress.export_stored(loaded, output)
    elif not compress.export(loaded, output):
        click.echo(f"metasearch: '{encoder}' is a stock model already; written as it is", err=True)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    click.echo(f"size: {size / 1e6:.2f} MB\nmodel: {output}")
