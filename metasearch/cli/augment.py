"""`metasearch augment`: more scored pairs, labelled by a cross-encoder."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.config.run import Device
from metasearch.errors import ConfigError

_FILE = click.Path(path_type=Path)


@_options.command("augment")
@click.argument("pairs", nargs=-1, required=True, type=_FILE)
@_options.encoder("Encoder that finds neighbours: built-in name, local folder or hub name.", required=True)
@click.option(
    "--cross-encoder", required=True, help="Cross-encoder that scores pairs: local folder or hub name, with one label."
)
@click.option(
    "--top-k", type=click.IntRange(min=1), default=10, show_default=True, help="Nearest neighbours of each sentence."
)
@click.option("--exclude", multiple=True, type=_FILE, metavar="FILE", help="Dev or test pairs to drop; repeatable.")
@click.option("--batch-size", type=click.IntRange(min=1), default=32, show_default=True, help="Pairs in a batch.")
@_options.options_group(_options.device, _options.trust)
@_options.output("CSV file to write, such as stsb-en-augmented.csv.", required=True)
def command(
    pairs: Sequence[Path], encoder: str, cross_encoder: str, top_k: int, exclude: Sequence[Path], output: Path,
    batch_size: int, device: Device, trust_remote_code: bool,
) -> None:  # fmt: skip
    """Pair each sentence of PAIRS with its nearest neighbours, and score the new pairs with a cross-encoder.

    PAIRS are files of scored pairs without header: sentence, sentence, score from 0 to 5. The output has the same
    format. A stopped command continues when you give it again.

    \b
    Example:
      metasearch augment stsb-en-train.csv --encoder minilm --cross-encoder cross-encoder/stsb-roberta-base \\
        --exclude stsb-en-dev.csv --exclude stsb-en-test.csv -o stsb-en-augmented.csv
    """
    from metasearch.data.scored import read_name
    from metasearch.io.output import claim_file

    # Before the imports that take seconds: where it cannot be written, or read by --scored, that is said at once.
    claim_file(output)
    if output.suffix != ".csv":
        raise ConfigError(f"-o {output}: expected a name that ends in .csv")
    read_name(output)

    from metasearch.cli._progress import ProgressBar
    from metasearch.encoders.cross_encoder import load_cross_encoder
    from metasearch.pipelines import augment
    from metasearch.pipelines.factory import load_encoder

    known, excluded = augment.read_pairs(pairs), augment.read_pairs(exclude)
    loaded = load_encoder(encoder, device=device, trust_remote_code=trust_remote_code)
    scorer = load_cross_encoder(cross_encoder, loaded.device, trust_remote_code)
    candidates = augment.find_candidates(loaded, known, excluded, top_k)
    with ProgressBar("augment") as bar:
        scores = augment.augment(candidates, scorer, output, batch_size, partial(bar.on_count, "pairs scored"))
    click.echo(f"{candidates.describe(scores)}\npairs: {output}")
