"""Blocks of lines during preparation: kept pairs, and reasons for dropped lines.

A block is a few ten thousand lines of one part, one after another. Its file has

    bytes      the texts of its pairs in UTF-8, source and target in turn
    ends       where each text ends, behind a 0 `(2 n + 1,)`
    lines      number of each pair's line in the part `(n,)`
    hashes     128 bits of the hash of each pair, in ascending order `(n, 2)`
    order      which pair each hash is of `(n,)`
    heads      how many hashes are below each 1024th part of their range `(1025,)`
    out_lines  numbers of the lines that are left out
    out_why    number of the reason of each
    read       lines of the block, and pairs
    whys       the reasons, as the bytes of a JSON text
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from metasearch.config.corpus import CorpusSettings
from metasearch.config.languages import primary_language
from metasearch.data.formats.arrays import json_array
from metasearch.data.parallel.corpus import Sides, cleaned
from metasearch.io import atomic_write

LINES = 2**16
"""Lines of a block."""
PARTS = 2**10
"""Parts of the range of a hash, in which hashes can be read without those of other parts."""


@dataclass(frozen=True)
class Rules:
    """Further reasons to drop a pair, beside the ones in every reader.

    Attributes:
        settings: which pairs are read, and how they are cleaned.
        across: whether a pair that another file had before is a duplicate, too.
        language: text → its language; None where it is not told.
        excluded: text → whether it stands in a test set.
    """

    settings: CorpusSettings
    across: bool = False
    language: Callable[[str], str] | None = None
    excluded: Callable[[str], str] | None = None

    def why(self, texts: tuple[str, str], languages: tuple[str, str]) -> str:
        """Return the reason to drop a pair; empty if it is kept."""
        if self.excluded is not None:
            for text in texts:
                if name := self.excluded(text):
                    return f"in the test set {name}"
        if self.language is not None:
            for text, language, side in zip(texts, languages, ("source", "translation"), strict=True):
                # A region or script, as in zh-CN, is not told.
                if self.language(text) != primary_language(language):
                    return f"{side} in another language"
        return ""


def scan(path: Path, rules: Rules, lines: Sequence[Sides | None], first: int, part: int, codes: tuple[str, str]) -> int:
    """Clean a block of lines and write its kept pairs; returns their number.

    Args:
        path: file of the block, which is there whole or not at all.
        rules: why lines are left out.
        lines: both sides of each.
        first: number of the first line in the part.
        part: number of the part.
        codes: languages of source and target.

    Raises:
        RunFolderError: the file cannot be written.
    """
    texts: list[bytes] = []
    kept: list[int] = []
    out: list[tuple[int, str]] = []
    for number, line in enumerate(lines, first):
        found = cleaned(line, rules.settings)
        why = found if isinstance(found, str) else rules.why(found, codes)
        if why:
            out.append((number, why))
        else:
            kept.append(number)
            texts += [text.encode("utf-8", "surrogatepass") for text in found]
    # Where duplicates are those within a file, equal pairs of two files have different hashes.
    origin = "\x1f".join(codes) if rules.across else str(part)
    hashes = hashes_of(texts, origin)
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    whys = list(dict.fromkeys(why for _, why in out))
    content = {
        "bytes": np.frombuffer(b"".join(texts), np.uint8),
        "ends": np.fromiter(accumulate(map(len, texts), initial=0), np.uint32),
        "lines": np.array(kept, np.uint32),
        "hashes": hashes[order],
        "order": order.astype(np.uint32),
        "heads": np.searchsorted(hashes[order, 0] >> np.uint64(54), np.arange(PARTS + 1)).astype(np.uint32),
        "out_lines": np.array([number for number, _ in out], np.uint32),
        "out_why": np.array([whys.index(why) for _, why in out], np.uint8),
        "read": np.array([len(lines), len(kept)], np.int64),
        "whys": json_array(whys),
    }
    atomic_write(path, save(content))
    return len(kept)


def hashes_of(texts: Sequence[bytes], origin: str) -> NDArray[np.uint64]:
    """Return a 128-bit hash for each pair of consecutive texts, `(n, 2)`."""
    key = hashlib.blake2b(origin.encode(), digest_size=32).digest()
    raw = []
    for source, target in zip(texts[::2], texts[1::2], strict=True):
        # No text has a tab: a file of two columns could not hold it. One of a table may, so lengths are hashed, too.
        digest = hashlib.blake2b(len(source).to_bytes(8, "little"), digest_size=16, key=key)
        digest.update(source)
        digest.update(target)
        raw.append(digest.digest())
    return np.frombuffer(b"".join(raw), "<u8").reshape(-1, 2)


class Block:
    """A block that was written; arrays are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        read, pairs = self.array("read").tolist()
        self.read, self.pairs = int(read), int(pairs)

    def array(self, name: str, rows: slice | None = None) -> NDArray[Any]:
        """Return an array, or some of its rows."""
        with safe_open(self.path, "numpy") as file:
            # A slice of no rows is an error there.
            whole = rows is None or rows.start == rows.stop
            found: NDArray[Any] = file.get_tensor(name) if whole else file.get_slice(name)[rows]
        return found if rows is None or not whole else found[:0]

    def hashes(self, first: int, last: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return hashes from a part of their range, and each one's pair number."""
        heads = self.array("heads")
        rows = slice(int(heads[first]), int(heads[last]))
        return self.array("hashes", rows), self.array("order", rows).astype(np.int64)

    def texts(self, pairs: NDArray[Any]) -> list[tuple[str, str]]:
        """Return the texts of some pairs."""
        raw, ends = self.array("bytes").tobytes(), self.array("ends").tolist()
        return [
            (
                raw[ends[2 * i] : ends[2 * i + 1]].decode("utf-8", "surrogatepass"),
                raw[ends[2 * i + 1] : ends[2 * i + 2]].decode("utf-8", "surrogatepass"),
            )
            for i in pairs.tolist()
        ]

    def left_out(self) -> tuple[NDArray[Any], list[str]]:
        """Return the numbers of dropped lines, each with its reason."""
        whys = json.loads(self.array("whys").tobytes())
        return self.array("out_lines"), [whys[i] for i in self.array("out_why").tolist()]


# Finds pairs that stood before by their hashes, a bucket of hashes at a time: memory does not grow with the corpus.
#
# That two of a billion different pairs share 128 bits has a probability of 1.5e-21.

_BUCKET = 2**20
"""Hashes of a bucket, about."""


def first_of_each(blocks: Sequence[Block]) -> list[NDArray[np.bool_]]:
    """Return the pairs in each block without an earlier equal pair."""
    starts = np.concatenate([[0], np.cumsum([block.pairs for block in blocks])]).astype(np.int64)
    kept = np.ones(starts[-1], np.bool_)
    count = min(PARTS, -(-int(starts[-1]) // _BUCKET))
    for bucket in range(count):
        first, last = (PARTS * edge // count for edge in (bucket, bucket + 1))
        found = [block.hashes(first, last) for block in blocks]
        numbers = [own + start for (_, own), start in zip(found, starts.tolist(), strict=False)]
        kept[_later(np.concatenate([hashes for hashes, _ in found]), np.concatenate(numbers))] = False
    return np.split(kept, starts[1:-1])


def _later(hashes: NDArray[np.uint64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of pairs whose hash occurs at a lower number."""
    order = np.lexsort((numbers, hashes[:, 1], hashes[:, 0]))
    found = hashes[order]
    same = (found[1:] == found[:-1]).all(1)
    later: NDArray[np.int64] = numbers[order][1:][same]
    return later
