"""A prepared corpus as the data of a stage: the same batches as from its files, with a window of it in memory."""

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.corpus import CorpusSettings
from metasearch.data.prepared.corpus import CorpusSelection, PreparedCorpus, open_corpus
from metasearch.data.prepared.holdout import alone, hold_out
from metasearch.data.prepared.manifest import Manifest, is_prepared
from metasearch.data.prepared.ranges import Bits
from metasearch.data.prepared.shard import Shard
from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.episodes.batches import Batches, Windows
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.io import atomic_write

log = logging.getLogger(__name__)

Rows = NDArray[np.int64]
_AT_ONCE = 64
"""Dev pairs that are read at a time."""


class CountedCorpus:
    """A prepared corpus and the tokens of its texts by an encoder, as `metasearch.episodes.batches.Windows` reads it.

    Tokens are counted once for each tokenizer, prompt and limit, and kept in the folder of the corpus. Where that
    cannot be written, they are counted at every start.

    Args:
        corpus: the corpus.
        encoder: counts the tokens of a text, up to its limit.
    """

    def __init__(self, corpus: PreparedCorpus, encoder: Encoder) -> None:
        self.corpus = corpus
        about = [tokenizer_fingerprint(encoder.model), encoder.prompt("text"), encoder.limit("text")]
        key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
        folder = corpus.folder / "lengths" / key
        with alone(folder):
            self._tokens = [self._counts(shard, encoder, folder / shard.counts.stored.name) for shard in corpus.shards]

    @staticmethod
    def _counts(shard: Shard, encoder: Encoder, path: Path) -> NDArray[np.int32]:
        """Return the tokens of each text of a shard `(T,)`, from a file or counted."""
        if path.is_file() and path.stat().st_size == 4 * shard.counts.texts:
            return np.memmap(path, np.int32, "r")
        counts = encoder.lengths(shard.texts(np.arange(shard.counts.texts)), "text").astype(np.int32)
        shard.mapped.forget()
        try:
            atomic_write(path, counts.tobytes())
        except RunFolderError as error:
            log.info("tokens are counted again at every start: %s", error)
        return counts

    def lengths(self, rows: NDArray[Any]) -> Rows:
        """Return the tokens of the longer side of some rows."""
        found = np.zeros(len(rows), np.int64)
        for shard, places, own in self.corpus.by_shard(rows):
            tokens = self._tokens[shard.number]
            found[places] = np.maximum(tokens[shard.source[own]], tokens[shard.target[own]])
        return found

    def pairs(self, rows: NDArray[Any]) -> list[Translation]:
        """Return the pairs of some rows, in their order."""
        return self.corpus.pairs(rows)

    def forget(self) -> None:
        """Let go of the memory that files were read to."""
        self.corpus.forget()


@dataclass(frozen=True)
class PreparedSource:
    """The data of a stage, as `metasearch.pipelines.distill.sources.Source`.

    Attributes:
        corpus: that it is of.
        train: what is learned from.
        dev_rows: what is held out, `(D,)`.
        dev: the pairs that are held out.
        settings: of the stage.
        fingerprint: hash of what is chosen of the corpus.
        described: its size in words.
        report: pairs that were left out as too long, in words; other losses are in the report of the preparation.
    """

    corpus: PreparedCorpus
    train: CorpusSelection
    dev_rows: Rows
    dev: list[Translation]
    settings: CorpusSettings
    fingerprint: str
    described: str
    report: str = ""

    def batches(self, encoder: Encoder, size: int, seed: int, name: str) -> Windows:
        """Return the training batches of an encoder, pairs of similar length together."""
        shares = self.train.groups(self.settings.balance)
        return Windows(CountedCorpus(self.corpus, encoder), shares, size, seed, name)

    def dev_batches(self, encoder: Encoder, size: int, name: str) -> Batches:
        """Return the dev batches, of which one epoch holds every pair once."""
        lengths = CountedCorpus(self.corpus, encoder).lengths(self.dev_rows)
        return Batches(self.dev, lengths, size, 0, name=f"{name} dev")

    def texts_seen(self, batches: Any, steps: int, translations: bool) -> "TextsSeen":
        """Return the texts that so many steps and the dev score look at; translations only where they are wanted."""
        seen, held = (Bits([shard.counts.pairs for shard in self.corpus.shards], full=False) for _ in range(2))
        held.add(self.dev_rows)
        for rows in batches.visited(steps):
            seen.add(rows)
        return TextsSeen(self.corpus, (seen, held), translations)


@dataclass(frozen=True)
class TextsSeen:
    """Rows of texts, shard by shard; they are found anew each time, so that only a bit a pair is held in memory.

    They stand in the order of the pairs, those of dev last, as `texts_for` has those of a corpus in memory.

    Attributes:
        corpus: that they are of.
        pairs: which pairs have them: those of training, and those of dev.
        translations: whether translations are among them, too, beside sources.
    """

    corpus: PreparedCorpus
    pairs: tuple[Bits, Bits]
    translations: bool

    def __iter__(self) -> Iterator[tuple[Shard, Rows]]:
        """Yield each shard that has any, and the rows of its texts, each once."""
        for shard in self.corpus.shards:
            pairs = np.concatenate([np.flatnonzero(bits.of(shard.number)) for bits in self.pairs])
            sides = [shard.source[pairs], *([shard.target[pairs]] if self.translations else [])]
            texts, first = np.unique(np.stack(sides, 1).ravel(), return_index=True)
            if len(texts):
                yield shard, texts[np.argsort(first)].astype(np.int64)


def prepared_folder(files: tuple[str, ...] | list[Path]) -> Path | None:
    """Return the prepared corpus that is given in the place of files; None where files are given.

    Raises:
        ConfigError: it is given together with something else.
    """
    folders = [Path(path) for path in files if is_prepared(Path(path))]
    if folders and len(files) > 1:
        raise ConfigError(f"--corpus {folders[0]}: a prepared corpus is trained on alone; prepare all files together")
    return folders[0] if folders else None


def require_settings(folder: Path, settings: CorpusSettings) -> None:
    """Raise `ConfigError` or `DataError` where a stage asks for what a corpus does not have; reads its manifest."""
    Manifest.read(folder)
    open_corpus(folder).chosen(settings)


def read_prepared(folder: Path, settings: CorpusSettings, counting: Encoder, seed: int) -> PreparedSource:
    """Return a prepared corpus as the data of a stage.

    Args:
        folder: of the corpus.
        settings: of the stage.
        counting: counts tokens to one more than `settings.max_tokens`, so that a longer text shows.
        seed: of the run.

    Raises:
        ConfigError: the stage asks for what was not done when the corpus was prepared.
        DataError: no pair is short enough, or there is too little for the dev part.
        RunFolderError: a file of the corpus is missing or damaged.
    """
    corpus = open_corpus(folder)
    chosen, report = corpus.chosen(settings), ""
    if settings.max_tokens:
        short = _without_long(chosen, CountedCorpus(corpus, counting), settings.max_tokens)
        if dropped := len(chosen) - len(short):
            report = f"{len(chosen)} pairs read; dropped: {dropped} over {settings.max_tokens} tokens"
        chosen = short
    train, rows = hold_out(chosen, settings.dev, seed)
    described = f"{train.describe()}, {len(rows)} for dev"
    wanted = settings.model_dump_json(include={"languages", "only", "max_lines", "max_tokens"})
    fingerprint = hashlib.sha256((corpus.manifest.seal + wanted).encode()).hexdigest()[:16]
    pairs: list[Translation] = []
    # Each is in a place of its own: of all of them the system would map far more than they are.
    for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
        pairs += corpus.pairs(some)
        corpus.forget()
    return PreparedSource(corpus, train, rows, pairs, settings, fingerprint, described, report)


def _without_long(chosen: CorpusSelection, counted: CountedCorpus, max_tokens: int) -> CorpusSelection:
    """Return the pairs of which no side has more tokens; `DataError` where there are none."""
    long = []
    for shard, start in zip(chosen.corpus.shards, chosen.corpus.starts.tolist(), strict=False):
        rows = start + np.arange(shard.counts.pairs)
        long.append(rows[counted.lengths(rows) > max_tokens])
    short = chosen.without(np.concatenate(long))
    if not len(short):
        raise DataError(f"max_tokens={max_tokens}: no pair is that short; every one has a side of more tokens")
    return short
