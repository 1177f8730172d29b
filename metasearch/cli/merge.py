"""`metasearch merge`: average the weights of encoders."""

from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result


@_options.command("merge")
@click.argument("encoders", nargs=-1, required=True, shell_complete=_options.complete("encoders"))
@click.option(
    "--alpha", type=click.FloatRange(0, 1), metavar="A",
    help="Position between two encoders: (1 - A) first + A second. By default all have equal shares.",
)  # fmt: skip
@_options.options_group(_options.trust, _options.output("Folder of the encoder; new or empty.", required=True))
@_options.as_json("the merged encoders")
def command(encoders: Sequence[str], alpha: float | None, trust_remote_code: bool, output: Path, as_json: bool) -> None:
    """Average the weights of ENCODERS, two or more with the same architecture.

    An average of an encoder before and after training can keep old knowledge and new. Each of ENCODERS is a built-in
    name, a local folder or a hub name. The first one gives tokenizer, prompts and lengths. Encoders that differ in more
    than their weights are refused.

    \b
    Examples:
      metasearch merge mini runs/maml/model --alpha 0.5 -o half-way
      metasearch merge runs/seed-0/model runs/seed-1/model runs/seed-2/model -o soup
    """
    from metasearch.config.run import EncoderConfig
    from metasearch.pipelines.merge import merge

    refs = [EncoderConfig(name=name, trust_remote_code=trust_remote_code) for name in encoders]
    done = merge(refs, output, alpha)
    parts = [part._asdict() for part in done.parts]
    facts = {"model": str(output), "parts": parts, "fingerprint": done.fingerprint}
    print_result(as_json, facts, f"{done.table()}\n\nmodel: {output}")
