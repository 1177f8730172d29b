"""`metasearch tokenizer`: learn a vocabulary from texts, and give it to an encoder."""

from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _options


@_options.command("tokenizer")
@click.argument("texts", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options.encoder("Encoder that gets the vocabulary: built-in name, local folder or hub name.", required=True)
@click.option(
    "--size", type=click.IntRange(1, 2**31 - 1), default=32000, show_default=True,
    help="Number of tokens, special ones and the 256 bytes included.",
)  # fmt: skip
@click.option("--lowercase", is_flag=True, help="Make all texts lower case.")
@_options.options_group(_options.seed("Random seed of embeddings that ENCODER cannot give."), _options.trust)
@_options.output("New or empty folder.", required=True, metavar="DIR")
def command(
    texts: Sequence[Path], encoder: str, size: int, lowercase: bool, seed: int, trust_remote_code: bool, output: Path
) -> None:
    """Learn a vocabulary from TEXTS, and write ENCODER with it to DIR.

    TEXTS are files, or folders of *.txt, *.tsv and parallel corpora in Moses format such as *.de-en.de, each also as
    .gz. A line is a text; in a .tsv file the first two columns are. No text is unknown to the tokenizer: characters too
    rare for a token of their own are spelt as bytes. A new token begins as the mean of the old tokens that spell it.

    \b
    Example:
      metasearch tokenizer corpus/en-de.tsv.gz --size 16000 --encoder minilm -o bilingual-minilm
    """
    from metasearch.data.texts import read_texts, text_files
    from metasearch.io.output import claim, whole

    claim(output)
    files = text_files(texts)

    from metasearch.compress.vocabulary import train_tokenizer, with_vocabulary
    from metasearch.encoders.load import load_encoder

    old = load_encoder(encoder, seed=seed, trust_remote_code=trust_remote_code)
    made = with_vocabulary(old, train_tokenizer(read_texts(files), size, lowercase), seed)
    with whole(output) as folder:
        made.write(folder)
    click.echo(f"encoder with {size:,} tokens: {output}")
