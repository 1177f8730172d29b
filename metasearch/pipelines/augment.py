"""Augmented SBERT: more scored pairs, labelled by a cross-encoder (Thakur et al. 2021; Ham & Kim, section 5.1).

Scores are appended to a file beside the output, a block of pairs a line. After a stop the same call continues with
the next block, and writes the same output.
"""

import csv
import io
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.util import semantic_search

from metasearch.data.formats.blank import remove_invisible
from metasearch.data.scored import scored_rows
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import fingerprint
from metasearch.errors import DataError, NonFiniteError, RunFolderError
from metasearch.io import atomic_write, fingerprint_of
from metasearch.io.output import claim_file
from metasearch.runs.signals import interrupted

BLOCK = 2048
"""Pairs that are scored, and then written, at a time."""

log = logging.getLogger(__name__)

TextPair = tuple[str, str]
Progress = Callable[[int, int], None]
"""Called with the number of pairs scored and the number of all."""


@dataclass(frozen=True)
class Candidates:
    """Pairs to be scored, a sentence and its neighbour each, and the counts behind them.

    `neighbours` counts pairs before the `known` ones, of the given files, and then the `excluded` ones are dropped.
    """

    pairs: tuple[TextPair, ...]
    sentences: int
    neighbours: int
    known: int
    excluded: int

    def describe(self, scores: Sequence[float]) -> str:
        """Return the counts, and how many scores are from 0 to 1, 1 to 2, up to 5, in two lines."""
        counts = np.histogram(5 * np.array(scores), bins=5, range=(0, 5))[0]
        scores_in_words = ", ".join(f"{i} to {i + 1}: {count}" for i, count in enumerate(counts))
        return (
            f"{self.sentences} sentences, {self.neighbours} pairs of neighbours; dropped {self.known} as known "
            f"and {self.excluded} as excluded; {len(self.pairs)} scored\nscores {scores_in_words}"
        )


def read_pairs(paths: Sequence[Path]) -> list[TextPair]:
    """Return the sentence pairs in files of scored pairs; `DataError` names file and line."""
    return [(first, second) for path in paths for first, second, _ in scored_rows(path)]


def find_candidates(
    encoder: Encoder, pairs: Sequence[TextPair], excluded: Iterable[TextPair] = (), top: int = 10
) -> Candidates:
    """Pair each sentence with its `top` nearest neighbours by the encoder's cosine.

    Pairs with known scores, and excluded ones of dev and test, are dropped in either order.
    """
    sentences = list(dict.fromkeys(text for pair in pairs for text in pair))
    if len(sentences) < 2:
        raise DataError(f"no neighbours: the pairs have {len(sentences)} distinct sentences")
    log.info("%s encodes %d sentences", encoder.name, len(sentences))
    vectors = encoder.encode(sentences, "text")
    if not np.isfinite(vectors).all():
        raise NonFiniteError(f"encoder '{encoder.name}' gives vectors that are not finite")
    rows = torch.from_numpy(vectors).to(encoder.device)
    distinct: dict[frozenset[str], TextPair] = {}
    for i, hits in enumerate(semantic_search(rows, rows, top_k=top + 1)):
        # The nearest is mostly the sentence itself; a duplicate in other words may stand before it.
        others = [int(hit["corpus_id"]) for hit in hits if hit["corpus_id"] != i]
        for j in others[:top]:
            distinct.setdefault(frozenset((sentences[i], sentences[j])), (sentences[i], sentences[j]))
    given = {frozenset(pair) for pair in pairs}
    barred = {frozenset(pair) for pair in excluded} - given
    new = tuple(pair for key, pair in distinct.items() if key not in given | barred)
    known, shut_out = len(distinct.keys() & given), len(distinct.keys() & barred)
    log.info("%d sentences have %d pairs of neighbours, %d of them new", len(sentences), len(distinct), len(new))
    if not new:
        raise DataError(
            f"no new pairs: of {len(distinct)} pairs of neighbours {known} are known and {shut_out} excluded; "
            "raise --top-k"
        )
    return Candidates(new, len(sentences), len(distinct), known, shut_out)


def augment(
    candidates: Candidates,
    scorer: CrossEncoder,
    output: Path,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> list[float]:
    """Score candidates and write them to a new file, or continue an interrupted call; return the scores, from 0 to 1.

    They are written as 0 to 5 with four decimals. `progress` is called after each block.
    """
    claim_file(output)
    pairs = candidates.pairs
    # Everything that changes a score; the batch size changes padding, and with it the last bits.
    settings = (scorer.activation_fn, scorer.max_seq_length, scorer.device, batch_size, BLOCK)
    key = fingerprint_of(pairs, repr((fingerprint(scorer), *settings)))[:8]
    partial = output.with_name(f"{output.name}.{key}.partial")
    scores: list[float] = []
    try:
        scores += _resume(partial)
        for start in range(len(scores), len(pairs), BLOCK):
            block = _scores(scorer, pairs[start : start + BLOCK], batch_size)
            with partial.open("a", encoding="utf-8") as file:
                file.write(json.dumps(block) + "\n")
            scores += block
            if progress:
                progress(len(scores), len(pairs))
        atomic_write(output, _table(pairs, scores))
        partial.unlink(missing_ok=True)
    except OSError as error:
        raise RunFolderError(f"{partial} cannot be written: {error.strerror}") from None
    except KeyboardInterrupt:
        raise interrupted(
            f"stopped; run the same command to continue after the {len(scores)} pairs in {partial}"
        ) from None
    return scores


def _table(pairs: Sequence[TextPair], scores: Sequence[float]) -> str:
    """Return CSV text without header, with scores from 0 to 5."""
    file = io.StringIO(newline="")
    # Sentences are always quoted, so that no file begins with what could be taken for a byte-order mark.
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows((*pair, round(5 * score, 4)) for pair, score in zip(pairs, scores, strict=True))
    return file.getvalue()


def _resume(partial: Path) -> list[float]:
    """Return the scores of the whole blocks in a file, and cut off a torn last line; makes the folder."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    lines = partial.read_text(encoding="utf-8").splitlines(keepends=True) if partial.is_file() else []
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        atomic_write(partial, "".join(whole))
    return [score for line in whole for score in json.loads(line)]


def _scores(scorer: CrossEncoder, pairs: Sequence[TextPair], batch_size: int) -> list[float]:
    """Return scores from 0 to 1 that have four decimals when they are multiplied by 5."""
    texts = [(remove_invisible(first), remove_invisible(second)) for first, second in pairs]
    scores = np.asarray(scorer.predict(texts, batch_size=batch_size, show_progress_bar=False), dtype=np.float64)
    for pair, score in zip(pairs, scores, strict=True):
        if not np.isfinite(score):
            raise NonFiniteError(f"the cross-encoder's score of '{pair[0][:60]}' and '{pair[1][:60]}' is {score}")
    return [round(5 * score, 4) / 5 for score in scores.clip(0.0, 1.0).tolist()]
