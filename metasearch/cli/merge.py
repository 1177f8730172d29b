"""`metasearch merge`: average the weights of encoders."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.errors import ConfigError


@_options.command("merge")
@click.argument("encoders", nargs=-1, required=True, shell_complete=_options.complete("encoders"))
@click.option(
    "--alpha", type=click.FloatRange(0, 1), metavar="A",
    help="Position between two encoders: (1 - A) first + A second.",
)  # fmt: skip
@click.option("--weights", metavar="LIST", help="Weight of each encoder, such as 0.5,0.3,0.2; equal by default.")
@_options.options_group(_options.trust, _options.output("Folder of the encoder; new or empty.", required=True))
@_options.as_json("the merged encoders")
def command(
    encoders: Sequence[str], alpha: float | None, weights: str | None, trust_remote_code: bool, output: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Average the weights of ENCODERS, two or more with the same architecture.

    An average of an encoder before and after training can keep old knowledge and new. Each of ENCODERS is a built-in
    name, a local folder or a hub name. The first one gives tokenizer, prompts and lengths. Encoders that differ in more
    than their weights are refused.

    \b
    Examples:
      metasearch merge mini runs/maml/model --alpha 0.5 -o half-way
      metasearch merge runs/seed-0/model runs/seed-1/model runs/seed-2/model -o soup
      metasearch merge runs/a/model runs/b/model --weights 0.7,0.3 -o more-of-a
    """
    from metasearch.compress.average import resolve_shares
    from metasearch.compress.output import claim

    claim(output)
    listed = None if weights is None else _numbers(weights)
    resolve_shares(len(encoders), alpha, listed)

    from metasearch.config.run import EncoderConfig
    from metasearch.pipelines.merge import merge

    refs = [EncoderConfig(name=name, trust_remote_code=trust_remote_code) for name in encoders]
    done = merge(refs, output, alpha, listed)
    if as_json:
        parts = [part._asdict() for part in done.parts]
        facts = {"model": str(output), "parts": parts, "fingerprint": done.fingerprint}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(f"{done.table()}\n\nmodel: {output}")


def _numbers(written: str) -> list[float]:
    try:
        return [float(number) for number in written.split(",")]
    except ValueError:
        raise ConfigError(f"--weights {written}: expected numbers such as 0.5,0.3,0.2") from None
