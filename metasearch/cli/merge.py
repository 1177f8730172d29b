"""`metasearch merge`: an encoder between others, by the weighted mean of their weights."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from metasearch.cli import _complete, _options
from metasearch.errors import ConfigError


@_options.command("merge")
@click.argument("encoders", nargs=-1, required=True, shell_complete=_complete.encoders)
@click.option(
    "--alpha", type=click.FloatRange(0, 1), metavar="A",
    help="Of the way from the first of two encoders to the second: (1 - A) first + A second.",
)  # fmt: skip
@click.option("--shares", metavar="LIST", help="Of each encoder, such as 0.5,0.3,0.2; by default all have the same.")
@_options.options_group(_options.trust)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder of the encoder; new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print what was merged as one JSON object on stdout.")
def command(
    encoders: Sequence[str],
    alpha: float | None,
    shares: str | None,
    trust_remote_code: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Make an encoder whose weights are the weighted mean of those of ENCODERS, two or more of the same form.

    Between an encoder before and after training lie some that know what it learned and what it knew before. Each of
    ENCODERS is a built-in name, a local folder or a hub name. Tokenizer, prompts and lengths are those of the first;
    encoders that differ in more than their weights are refused.

    \b
    Examples:
      metasearch merge mini runs/maml/model --alpha 0.5 -o half-way
      metasearch merge runs/seed-0/model runs/seed-1/model runs/seed-2/model -o soup
      metasearch merge runs/a/model runs/b/model --shares 0.7,0.3 -o more-of-a
    """
    from metasearch.compress.average import shares_of
    from metasearch.compress.output import claim

    if output is None:
        raise ConfigError("say where the encoder goes with -o DIR")
    claim(output)
    listed = None if shares is None else _numbers(shares)
    shares_of(len(encoders), alpha, listed)

    from metasearch.config.run import EncoderConfig
    from metasearch.pipelines.merge import merge

    refs = [EncoderConfig(name=name, trust_remote_code=trust_remote_code) for name in encoders]
    done = merge(refs, output, alpha, listed)
    if as_json:
        click.echo(json.dumps({"model": str(output), **asdict(done)}, ensure_ascii=False))
    else:
        click.echo(f"{done.table()}\n\nmodel: {output}")


def _numbers(written: str) -> list[float]:
    try:
        return [float(number) for number in written.split(",")]
    except ValueError:
        raise ConfigError(f"--shares {written}: expected numbers such as 0.5,0.3,0.2") from None
