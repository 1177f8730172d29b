"""Augmented SBERT: more scored pairs, labelled by a cross-encoder (Thakur et al. 2021; Ham & Kim, section 5.1).

    sentences   all distinct ones of the given pairs
    candidates  each with its nearest neighbours by the encoder, without the given and the excluded pairs
    scores      of the cross-encoder, written as a file that `metasearch.data.scored` reads

Neighbours are exact: dot products of unit vectors, block by block. Scores are kept in blocks while the file is made,
so that the same call goes on after a stop and gives the same file.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder

from metasearch.compress.output import claim_file
from metasearch.data.scored import scored_csv, scored_rows
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import fingerprint
from metasearch.errors import DataError, Interrupted, NonFiniteError, RunFolderError

BLOCK = 2048
"""Pairs that are scored, and then kept, at a time."""

_ROWS = 1024
"""Sentences whose similarity to all others is held in memory at a time."""

_BINS = 5

log = logging.getLogger(__name__)

TextPair = tuple[str, str]
Progress = Callable[[int, int], None]
"""Hears how many pairs of how many are scored."""


@dataclass(frozen=True)
class Candidates:
    """Pairs to be scored, and how they came to be.

    Attributes:
        pairs: each unordered pair once, a sentence and its neighbour.
        sentences: number of distinct sentences.
        neighbours: number of distinct unordered pairs of a sentence and a neighbour.
        known: how many of them stand in the given files.
        excluded: how many of the others stand in the excluded files.
    """

    pairs: tuple[TextPair, ...]
    sentences: int
    neighbours: int
    known: int
    excluded: int


@dataclass(frozen=True)
class Augmented:
    """What was written.

    Attributes:
        output: the file.
        candidates: what was scored.
        histogram: number of scores from 0 to 1, from 1 to 2, and so on to 5.
    """

    output: Path
    candidates: Candidates
    histogram: tuple[int, ...]

    def describe(self) -> str:
        """Return the counts and the scores in two lines."""
        found = self.candidates
        scores = ", ".join(f"{i} to {i + 1}: {count}" for i, count in enumerate(self.histogram))
        return (
            f"{found.sentences} sentences, {found.neighbours} pairs of neighbours; dropped {found.known} as known and "
            f"{found.excluded} as excluded; {len(found.pairs)} written to {self.output}\nscores {scores}"
        )


def read_pairs(paths: Sequence[Path]) -> list[TextPair]:
    """Return the sentence pairs of files of scored pairs; `DataError` names file and line of a damaged one."""
    return [(first, second) for path in paths for first, second, _ in scored_rows(path)]


def neighbours(vectors: NDArray[np.float32], top: int, device: str | torch.device = "cpu") -> NDArray[np.int64]:
    """Return for each row the rows nearest to it by dot product, itself left out.

    Args:
        vectors: unit vectors `(N, D)`.
        top: k, how many; at most N − 1 are found.
        device: where the products are taken.

    Returns:
        Rows `(N, min(k, N − 1))`, nearest first; of equally near ones the first.
    """
    count = min(top, len(vectors) - 1)
    everything = torch.from_numpy(vectors).to(device)
    found = np.empty((len(vectors), count), dtype=np.int64)
    for start in range(0, len(vectors), _ROWS):
        block = everything[start : start + _ROWS] @ everything.T
        own = torch.arange(len(block), device=block.device)
        block[own, own + start] = -torch.inf
        # `topk` takes any of equal scores; all that reach the last of them are ranked by score, then by row.
        reach = block >= block.topk(count, dim=1).values[:, -1:]
        for i, (row, near) in enumerate(zip(block.cpu().numpy(), reach.cpu().numpy(), strict=True)):
            rows = np.flatnonzero(near)
            found[start + i] = rows[np.argsort(-row[rows], kind="stable")][:count]
    return found


def find_candidates(
    encoder: Encoder, pairs: Sequence[TextPair], excluded: Iterable[TextPair] = (), top: int = 10
) -> Candidates:
    """Return each sentence with its nearest neighbours, without known and excluded pairs in either order.

    Args:
        encoder: gives unit vectors, by whose cosine neighbours are found.
        pairs: whose sentences are taken; they are known already.
        excluded: pairs of dev and test.
        top: neighbours of each sentence.

    Raises:
        DataError: there is no pair to score.
        NonFiniteError: the encoder's vectors are not finite.
    """
    sentences = list(dict.fromkeys(text for pair in pairs for text in pair))
    if len(sentences) < 2:
        raise DataError(f"no neighbours: the pairs have {len(sentences)} distinct sentences")
    log.info("%s encodes %d sentences", encoder.name, len(sentences))
    vectors = encoder.encode(sentences, "text")
    if not np.isfinite(vectors).all():
        raise NonFiniteError(f"encoder '{encoder.name}' gives vectors that are not finite")
    nearest = neighbours(vectors, top, encoder.device)
    distinct: dict[frozenset[str], TextPair] = {}
    for i, row in enumerate(nearest):
        for j in row:
            distinct.setdefault(frozenset((sentences[i], sentences[j])), (sentences[i], sentences[j]))
    given = {frozenset(pair) for pair in pairs}
    barred = {frozenset(pair) for pair in excluded} - given
    kept = tuple(pair for key, pair in distinct.items() if key not in given and key not in barred)
    found = Candidates(kept, len(sentences), len(distinct), len(distinct.keys() & given), len(distinct.keys() & barred))
    log.info("%d sentences have %d pairs of neighbours, %d of them new", len(sentences), len(distinct), len(kept))
    if not kept:
        raise DataError(
            f"no new pairs: of {found.neighbours} pairs of neighbours {found.known} are known and {found.excluded} "
            "excluded; raise --top"
        )
    return found


def augment(
    candidates: Candidates,
    scorer: CrossEncoder,
    output: Path,
    batch_size: int = 32,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> Augmented:
    """Score the candidates and write them, or go on with what an interrupted call has scored.

    Args:
        candidates: what is scored.
        scorer: gives scores; they are cut to 0 to 1, and written as 0 to 5 with four decimals.
        output: the file that is written; until it is whole, blocks stand in `<output>.<key>.partial`.
        batch_size: pairs in one forward pass.
        block: pairs that are scored and kept at a time.
        progress: hears of each block.

    Raises:
        RunFolderError: the output exists or cannot be written.
        NonFiniteError: a score is not finite.
        Interrupted: Ctrl-C; the blocks that are whole are kept.
    """
    claim_file(output)
    pairs = candidates.pairs
    settings = (scorer.activation_fn, scorer.max_seq_length, scorer.device, batch_size, block)
    key = _key(pairs, fingerprint(scorer), *settings)
    partial = output.with_name(f"{output.name}.{key}.partial")
    _mention_others(output, partial)
    try:
        partial.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(pairs), block):
            path = partial / f"{start:012d}.csv"
            if not path.exists():
                part = pairs[start : start + block]
                _write(path, scored_csv((*p, s) for p, s in zip(part, _scores(scorer, part, batch_size), strict=True)))
            if progress:
                progress(min(start + block, len(pairs)), len(pairs))
        parts = sorted(partial.glob("*.csv"))
        _write(output, "".join(path.read_bytes().decode() for path in parts))
    except OSError as error:
        kept = f"; {partial} keeps what is done" if partial.is_dir() else ""
        raise RunFolderError(f"{output}: cannot be written: {error.strerror or error}{kept}") from error
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {partial} keeps what is done, and the same command goes on") from None
    shutil.rmtree(partial, ignore_errors=True)
    scores = [5 * score for _, _, score in scored_rows(output)]
    return Augmented(output, candidates, tuple(np.histogram(scores, bins=_BINS, range=(0, 5))[0].tolist()))


def _mention_others(output: Path, partial: Path) -> None:
    """Log what calls with other settings have left beside an output."""
    others = [path for path in sorted(output.parent.glob("*.partial")) if path.name.startswith(f"{output.name}.")]
    for path in others:
        if path != partial:
            log.info("%s holds scores of a stopped call with other settings; delete it if they are not wanted", path)


def _scores(scorer: CrossEncoder, pairs: Sequence[TextPair], batch_size: int) -> list[float]:
    """Return scores from 0 to 1 that have four decimals when they are multiplied by 5."""
    found = np.asarray(scorer.predict(list(pairs), batch_size=batch_size, show_progress_bar=False), dtype=np.float64)
    for pair, score in zip(pairs, found, strict=True):
        if not np.isfinite(score):
            raise NonFiniteError(f"the cross-encoder's score of '{pair[0][:60]}' and '{pair[1][:60]}' is {score}")
    return [round(5 * score, 4) / 5 for score in found.clip(0.0, 1.0).tolist()]


def _write(path: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _key(pairs: Sequence[TextPair], *settings: object) -> str:
    digest = hashlib.sha256(repr(settings).encode())
    for pair in pairs:
        digest.update("\x1f".join(pair).encode() + b"\x1e")
    return digest.hexdigest()[:8]
