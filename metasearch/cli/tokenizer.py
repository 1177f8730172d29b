"""`metasearch tokenizer`: learn a vocabulary from texts, and give it to an encoder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import reject_unused_options
from metasearch.errors import ConfigError


@_options.command("tokenizer")
@click.argument("texts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--size", type=click.IntRange(1, 2**31 - 1), default=32000, show_default=True,
    help="Number of tokens, special ones and the 256 bytes included.",
)  # fmt: skip
@click.option("--kind", type=click.Choice(["unigram", "bpe"]), default="unigram", show_default=True, help="Algorithm.")
@click.option("--lowercase", is_flag=True, help="Make all texts lower case.")
@click.option(
    "--max-length", type=click.IntRange(min=3), metavar="N",
    help="Longest input in tokens, by default 512; with --encoder it is the encoder's.",
)  # fmt: skip
@_options.encoder("Write this encoder with the new vocabulary: built-in name, local folder or hub name.")
@click.option(
    "--init", "initial", type=click.Choice(["pieces", "random"]),
    help="Initial rows of the new embedding matrix: the mean of a token's old pieces (default), or random.",
)  # fmt: skip
@_options.options_group(_options.seed("Random seed of random rows."), _options.trust)
@_options.output("New or empty folder.", required=True, metavar="DIR")
def command(
    texts: Sequence[Path], size: int, kind: Any, lowercase: bool, max_length: int | None, encoder: str | None,
    initial: Any, seed: int, trust_remote_code: bool, output: Path,
) -> None:  # fmt: skip
    """Learn a vocabulary from TEXTS, and write it to DIR.

    TEXTS are files, or folders of *.txt, *.tsv and parallel corpora in Moses format such as *.de-en.de, each also as
    .gz. A line is a text; in a .tsv file the first two columns are. No text is unknown to the tokenizer: characters too
    rare for a token of their own are spelt as bytes. Prints how many tokens it makes of each file.

    \b
    Examples:
      metasearch tokenizer corpus/ --size 32000 -o vocabulary
      metasearch tokenizer corpus/en-de.tsv.gz --size 16000 --encoder minilm -o bilingual-minilm
    """
    from metasearch.compress.output import claim, whole
    from metasearch.compress.texts import read_texts, text_files

    if encoder is None:
        reject_unused_options("initial", "seed", "trust_remote_code", why="no encoder is written; pass --encoder")
    elif max_length is not None:
        raise ConfigError("--max-length cannot be combined with --encoder, which keeps its own")
    claim(output)
    files = text_files(texts)

    from metasearch.compress.vocabulary import train_tokenizer, with_vocabulary
    from metasearch.pipelines import compress
    from metasearch.pipelines.factory import load_encoder

    old = None if encoder is None else load_encoder(encoder, seed=seed, trust_remote_code=trust_remote_code)
    tokenizer = train_tokenizer(read_texts(files), size, kind, lowercase, max_length or 512)
    if old is None:
        with whole(output) as folder:
            tokenizer.save_pretrained(str(folder))
    else:
        compress.write(with_vocabulary(old, tokenizer, initial or "pieces", seed), output)
    click.echo(_table(tokenizer, files))
    click.echo(f"\n{'tokenizer' if old is None else 'encoder'} of {len(tokenizer):,} tokens: {output}")


def _table(tokenizer: Any, files: Sequence[Path]) -> str:
    from metasearch.compress.fertility import fertility
    from metasearch.compress.texts import read_file
    from metasearch.runs.markdown import markdown

    spent = [(path, fertility(tokenizer, read_file(path))) for path in files]
    header = ["file", "tokens", "a word", "a character", "bytes"]
    rows = [
        [str(path), f"{one.tokens:,}", f"{one.per_word:.2f}", f"{one.per_character:.3f}", f"{one.spelt_share:.2%}"]
        for path, one in spent
    ]
    return markdown(header, rows)
