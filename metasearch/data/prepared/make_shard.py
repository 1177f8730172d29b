"""Tokenises the pairs of a shard and writes it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from metasearch.data.formats.arrays import ArrayFile, check
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.prepared.blocks import Block
from metasearch.data.prepared.manifest import REMEDY, ShardCounts, Tokens, read_sealed, write_sealed
from metasearch.data.prepared.shard import write_shard
from metasearch.data.report import EXAMPLES
from metasearch.errors import RunFolderError

_AT_ONCE = 4096
"""Texts that are tokenised together: the tokenizer holds far more of each than its numbers until all are done."""

ShardPieces = Sequence[tuple[int, Path, NDArray[np.int32]]]
"""Number of a part, file of a block, and pairs of it."""


@dataclass(frozen=True)
class TokenizerFile:
    """A tokenizer of the library `tokenizers`, to be loaded in another process.

    Attributes:
        content: in JSON.
        special: whether special tokens are added.
        split: whether special tokens that a text has are read as other words are.
        side: on which texts are cut.
    """

    content: str
    special: bool
    split: bool
    side: str


class Tokeniser:
    """Tokenises as an encoder does.

    Args:
        file: the tokenizer.
        tokens: how texts are tokenised.
    """

    def __init__(self, file: TokenizerFile, tokens: Tokens) -> None:
        self.tokens, self._special = tokens, file.special
        self._tokenizer = Tokenizer.from_str(file.content)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(tokens.limit, direction=file.side)
        self._tokenizer.encode_special_tokens = file.split
        self._kind = np.uint16 if tokens.words <= 2**16 else np.uint32

    def ids(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Return the numbers of the tokens of each text."""
        found: list[NDArray[Any]] = []
        for start in range(0, len(texts), _AT_ONCE):
            some = [remove_invisible(self.tokens.prompt + text) for text in texts[start : start + _AT_ONCE]]
            encoded = self._tokenizer.encode_batch_fast(some, add_special_tokens=self._special)
            found += [np.array(each.ids, self._kind) for each in encoded]
        return found


@dataclass(frozen=True)
class Made:
    """A shard that was written.

    Attributes:
        counts: its file and sizes.
        long: part → pairs that were left out as a side was too long.
        examples: part → lines of the first few of these.
    """

    counts: ShardCounts
    long: dict[int, int]
    examples: dict[int, list[int]]


def make_shard(folder: Path, number: int, pieces: ShardPieces, tokeniser: Tokeniser, max_tokens: int) -> Made:
    """Write a shard, unless it was before; a note of it in `work` is written last.

    Raises:
        RunFolderError: it cannot be written.
    """
    if made := read_made(folder, number):
        return made
    texts: dict[str, int] = {}
    source, target, part, lines = [], [], [], []
    for own, path, pairs in pieces:
        block = Block(path)
        for first, second in block.texts(pairs):
            source.append(texts.setdefault(first, len(texts)))
            target.append(texts.setdefault(second, len(texts)))
        part += [own] * len(pairs)
        lines.append(block.array("lines")[pairs])
    ids = tokeniser.ids(list(texts))
    numbers = np.stack([np.array(each, np.int64) for each in (source, target, part)])
    lengths = np.array([len(each) for each in ids])
    short = lengths[numbers[:2]].max(0) <= max_tokens if max_tokens else np.ones(len(part), np.bool_)
    # In the order of their first pair, as if the long ones had never been there.
    used, first_at = np.unique(numbers[:2, short].T.ravel(), return_index=True)
    used = used[np.argsort(first_at)]
    place = np.zeros(len(ids), np.int64)
    place[used] = np.arange(len(used))
    all_texts = list(texts)
    chosen = [ids[row] for row in used.tolist()]
    pairs_of = (place[numbers[0, short]], place[numbers[1, short]], numbers[2, short])
    words = tokeniser.tokens.words
    stored = write_shard(folder, words, [all_texts[row] for row in used.tolist()], chosen, pairs_of)
    cut = int((lengths[used] >= tokeniser.tokens.limit).sum())
    counts = ShardCounts(stored, int(short.sum()), len(used), int(lengths[used].sum()), cut)
    out = numbers[2, ~short]
    out_lines = np.concatenate(lines)[~short]
    examples = {own: out_lines[out == own][:EXAMPLES].tolist() for own in np.unique(out).tolist()}
    made = Made(counts, dict(sorted(Counter(out.tolist()).items())), examples)
    write_sealed(_note(folder, number), {"counts": asdict(counts), "long": list(made.long.items()),
                                         "examples": list(examples.items())})  # fmt: skip
    return made


def read_made(folder: Path, number: int) -> Made | None:
    """Return what was written of a shard before; None where it is not there whole."""
    path = _note(folder, number)
    if not path.is_file():
        return None
    try:
        tree, _ = read_sealed(path)
        counts = ShardCounts(**{**tree["counts"], "stored": ArrayFile(**tree["counts"]["stored"])})
        check(folder / "shards", counts.stored, REMEDY)
    except RunFolderError:
        path.unlink()
        return None
    return Made(counts, {int(part): count for part, count in tree["long"]}, {int(p): at for p, at in tree["examples"]})


def _note(folder: Path, number: int) -> Path:
    return folder / "work" / f"shard-{number:06d}.json"
