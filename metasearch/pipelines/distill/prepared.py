"""A prepared corpus as the data of a stage: the same pairs and batches as from its files; texts stay on the disk."""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasearch.config.corpus import CorpusSettings
from metasearch.data.prepared.corpus import CorpusSelection, PreparedCorpus, hold_out, open_corpus
from metasearch.data.prepared.manifest import Manifest, is_prepared
from metasearch.data.prepared.shard import Shard
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.io import atomic_write

log = logging.getLogger(__name__)

Rows = NDArray[np.int64]


class TokenCounts:
    """The tokens of the texts of a prepared corpus by an encoder.

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
            log.info("tokens are counted at every start: %s", error)
        return counts

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """Return the tokens of the longer side of some rows."""
        found = np.zeros(len(rows), np.int64)
        for shard, places, own in self.corpus.by_shard(rows):
            tokens = self._tokens[shard.number]
            found[places] = np.maximum(tokens[shard.source[own]], tokens[shard.target[own]])
        return found


def texts_seen(rows: Sequence[Rows], corpus: PreparedCorpus, translations: bool) -> Iterator[tuple[Shard, Rows]]:
    """Yield each shard that has texts of some pairs, and the rows of these texts, each once.

    They stand in the order of the pairs, as `texts_for` has those of a corpus in memory.

    Args:
        rows: ascending rows of pairs, those of training and those of dev.
        corpus: that they are from.
        translations: whether translations are among the texts, too, beside sources.
    """
    for shard, start in zip(corpus.shards, corpus.starts.tolist(), strict=False):
        bounds = start, start + shard.counts.pairs
        pairs = np.concatenate([each[slice(*np.searchsorted(each, bounds))] for each in rows]) - start
        sides = [shard.source[pairs], *([shard.target[pairs]] if translations else [])]
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
        raise ConfigError(
            f"--corpus {folders[0]}: a prepared corpus cannot be combined with other files; prepare all files together"
        )
    return folders[0] if folders else None


def require_settings(folder: Path, settings: CorpusSettings) -> None:
    """Raise `ConfigError` or `DataError` where a stage asks for what a corpus does not have; reads its manifest."""
    Manifest.read(folder)
    open_corpus(folder).chosen(settings)


def read_prepared(
    folder: Path, settings: CorpusSettings, counting: Encoder, seed: int
) -> tuple[CorpusSelection, CorpusSelection, str]:
    """Return what a stage learns from and what is held out, and in words which pairs were too long.

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
        short = TokenCounts(corpus, counting).lengths(chosen.rows) <= settings.max_tokens
        if not short.any():
            raise DataError(f"max_tokens={settings.max_tokens}: no pair is that short")
        if not short.all():
            report = f"{len(chosen)} pairs read; dropped: {(~short).sum()} over {settings.max_tokens} tokens"
        chosen = chosen.subset(short)
    train, dev = hold_out(chosen, settings.dev, seed)
    return train, dev, report


def fingerprint_of_chosen(corpus: PreparedCorpus, settings: CorpusSettings) -> str:
    """Return the hash of what a stage chooses of a corpus."""
    wanted = settings.model_dump_json(include={"languages", "only", "max_lines", "max_tokens"})
    return hashlib.sha256((corpus.manifest.seal + wanted).encode()).hexdigest()[:16]
