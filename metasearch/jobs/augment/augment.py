"""Augmented SBERT: more scored pairs, labelled by a cross-encoder (Thakur et al. 2021; Ham & Kim, section 5.1).

    sentences   all distinct ones of the given pairs
    candidates  each with its nearest neighbours by the encoder, without the given and the excluded pairs
    scores      of the cross-encoder, written as a file that `metasearch.data.scored` reads

Neighbours are exact: dot products of unit vectors, block by block. Scores are written block by block, so that the same
call goes on after a stop and gives the same file.
"""

import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder

from metasearch.compress.output import claim_file
from metasearch.data.fingerprint import fingerprint_of
from metasearch.data.scored import scored_csv, scored_rows
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import fingerprint
from metasearch.errors import DataError, NonFiniteError, RunFolderError, interrupted
from metasearch.evaluation.metrics.ranking import highest
from metasearch.files import write_whole

BLOCK = 2048
"""Pairs that are scored, and then written, at a time."""

_ROWS = 1024
"""Sentences whose similarity to all others is held in memory at a time."""

log = logging.getLogger(__name__)

TextPair = tuple[str, str]
Progress = Callable[[int, int], None]
"""Called with the number of pairs scored and the number of all."""


@dataclass(frozen=True)
class Candidates:
    """Pairs to be scored, a sentence and its neighbour each, and the counts behind them.

    Attributes:
        pairs: each unordered pair once.
        sentences: number of distinct sentences.
        neighbours: number of pairs before known and excluded ones were dropped.
        known: number of pairs that are in the given files.
        excluded: number of the others that are in the excluded files.
    """

    pairs: tuple[TextPair, ...]
    sentences: int
    neighbours: int
    known: int
    excluded: int


@dataclass(frozen=True)
class Augmented:
    """A file of scored pairs that was written; `histogram` counts scores from 0 to 1, from 1 to 2, and so on to 5."""

    output: Path
    candidates: Candidates
    histogram: tuple[int, ...]

    def describe(self) -> str:
        """Return the counts and the scores in two lines."""
        counts = self.candidates
        scores = ", ".join(f"{i} to {i + 1}: {count}" for i, count in enumerate(self.histogram))
        return (
            f"{counts.sentences} sentences, {counts.neighbours} pairs of neighbours; dropped {counts.known} as known "
            f"and {counts.excluded} as excluded; {len(counts.pairs)} written to {self.output}\nscores {scores}"
        )


def read_pairs(paths: Sequence[Path]) -> list[TextPair]:
    """Return the sentence pairs of files of scored pairs; `DataError` names file and line of a damaged one."""
    return [(first, second) for path in paths for first, second, _ in scored_rows(path)]


def neighbours(vectors: NDArray[np.float32], top: int, device: str | torch.device = "cpu") -> NDArray[np.int64]:
    """Return the numbers of the k rows nearest to each row of `(N, D)` by dot product, itself left out.

    Returns:
        Numbers `(N, min(k, N − 1))`, nearest first; of equally near ones the first.
    """
    everything = torch.from_numpy(vectors).to(device)
    parts: list[NDArray[np.int64]] = []
    for start in range(0, len(vectors), _ROWS):
        block = (everything[start : start + _ROWS] @ everything.T).cpu().numpy()
        own = np.arange(len(block))
        block[own, start + own] = -np.inf
        parts.append(highest(block, min(top, len(vectors) - 1)))
    return np.concatenate(parts)


def find_candidates(
    encoder: Encoder, pairs: Sequence[TextPair], excluded: Iterable[TextPair] = (), top: int = 10
) -> Candidates:
    """Return each sentence of pairs with its `top` nearest neighbours by the encoder's cosine.

    The pairs themselves, whose scores are known, and excluded ones, of dev and test, are left out in either order.

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
    new = tuple(pair for key, pair in distinct.items() if key not in given | barred)
    known, shut_out = len(distinct.keys() & given), len(distinct.keys() & barred)
    log.info("%d sentences have %d pairs of neighbours, %d of them new", len(sentences), len(distinct), len(new))
    if not new:
        raise DataError(
            f"no new pairs: of {len(distinct)} pairs of neighbours {known} are known and {shut_out} excluded; "
            "raise --top"
        )
    return Candidates(new, len(sentences), len(distinct), known, shut_out)


def augment(
    candidates: Candidates,
    scorer: CrossEncoder,
    output: Path,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> Augmented:
    """Score the candidates and write them to a new file, or go on with what an interrupted call has scored.

    Scores are cut to 0 to 1, and written as 0 to 5 with four decimals. Until the output is whole, its blocks are in the
    folder `<output>.<key>.partial`; `progress` is called after each.

    Raises:
        RunFolderError: the output exists or cannot be written.
        NonFiniteError: a score is not finite.
        Interrupted: Ctrl-C; the blocks that are whole are kept.
    """
    claim_file(output)
    pairs = candidates.pairs
    # All that changes a score: the size of a batch, too, whose padding changes last bits.
    settings = (scorer.activation_fn, scorer.max_seq_length, scorer.device, batch_size, BLOCK)
    key = fingerprint_of(pairs, repr((fingerprint(scorer), *settings)))[:8]
    partial = output.with_name(f"{output.name}.{key}.partial")
    for path in sorted(output.parent.glob("*.partial")):
        if path.name.startswith(f"{output.name}.") and path != partial:
            log.info("%s holds scores of a stopped call with other settings; delete it if they are not wanted", path)
    try:
        for start in range(0, len(pairs), BLOCK):
            # Padded with zeros, so that names sort as numbers do.
            path = partial / f"{start:012d}.csv"
            part = pairs[start : start + BLOCK]
            if not path.exists():
                scores = _scores(scorer, part, batch_size)
                write_whole(path, scored_csv((*pair, score) for pair, score in zip(part, scores, strict=True)))
            if progress:
                progress(start + len(part), len(pairs))
        parts = sorted(partial.glob("*.csv"))
        # Bytes: reading as text would change line ends, which a quoted field may hold.
        write_whole(output, "".join(path.read_bytes().decode() for path in parts))
    except RunFolderError as error:
        rest = f"; {partial} keeps what is done" if partial.is_dir() else ""
        raise RunFolderError(f"{error}{rest}") from None
    except KeyboardInterrupt:
        kept = f"{partial} keeps what is done, and the same command goes on"
        raise interrupted(f"stopped; {kept if partial.is_dir() else 'nothing was written'}") from None
    shutil.rmtree(partial, ignore_errors=True)
    # Read back, since blocks of an earlier call are a part of the file.
    scores = [5 * score for _, _, score in scored_rows(output)]
    return Augmented(output, candidates, tuple(np.histogram(scores, bins=5, range=(0, 5))[0].tolist()))


def _scores(scorer: CrossEncoder, pairs: Sequence[TextPair], batch_size: int) -> list[float]:
    """Return scores from 0 to 1 that have four decimals when they are multiplied by 5."""
    scores = np.asarray(scorer.predict(list(pairs), batch_size=batch_size, show_progress_bar=False), dtype=np.float64)
    for pair, score in zip(pairs, scores, strict=True):
        if not np.isfinite(score):
            raise NonFiniteError(f"the cross-encoder's score of '{pair[0][:60]}' and '{pair[1][:60]}' is {score}")
    return [round(5 * score, 4) / 5 for score in scores.clip(0.0, 1.0).tolist()]
