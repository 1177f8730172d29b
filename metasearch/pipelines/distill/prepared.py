"""A prepared corpus as the data of a stage: the same batches as from its files, with a window of it in memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.corpus import CorpusSettings
from metasearch.data.prepared.corpus import CorpusSelection, PreparedCorpus, open_corpus
from metasearch.data.prepared.holdout import hold_out
from metasearch.data.prepared.manifest import Manifest, is_prepared
from metasearch.data.prepared.ranges import Bits
from metasearch.data.prepared.shard import Shard
from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.episodes.batches import Batches, Windows
from metasearch.errors import ConfigError, EncoderError

Rows = NDArray[np.int64]
_AT_ONCE = 64
"""Dev pairs that are read at a time."""


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
        report: empty: what was left out was said when the corpus was prepared.
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
        return Windows(self.corpus, shares, size, seed, name, encoder.limit("text"))

    def dev_batches(self, encoder: Encoder, size: int, name: str) -> Batches:
        """Return the dev batches, of which one epoch holds every pair once."""
        lengths = np.minimum(self.corpus.lengths(self.dev_rows), encoder.limit("text"))
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


def read_prepared(folder: Path, settings: CorpusSettings, encoder: Encoder, seed: int) -> PreparedSource:
    """Return a prepared corpus as the data of a stage.

    Raises:
        ConfigError: the stage asks for what was not done when the corpus was prepared.
        DataError: there is too little for the dev part.
        EncoderError: the corpus was tokenised by another tokenizer than the encoder's.
        RunFolderError: a file of the corpus is missing or damaged.
    """
    corpus = open_corpus(folder)
    _require_tokenizer(corpus, encoder)
    chosen = corpus.chosen(settings)
    train, rows = hold_out(chosen, settings.dev, seed)
    described = f"{train.describe()}, {len(rows)} for dev"
    wanted = settings.model_dump_json(include={"languages", "only", "max_lines"})
    fingerprint = hashlib.sha256((corpus.manifest.seal + wanted).encode()).hexdigest()[:16]
    pairs: list[Translation] = []
    # Each is in a place of its own: of all of them the system would map far more than they are.
    for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
        pairs += corpus.pairs(some)
        corpus.forget()
    return PreparedSource(corpus, train, rows, pairs, settings, fingerprint, described)


def _require_tokenizer(corpus: PreparedCorpus, encoder: Encoder) -> None:
    tokens, own = corpus.manifest.asked.tokens, tokenizer_fingerprint(encoder.model)
    if tokens.fingerprint != own:
        raise EncoderError(
            f"{corpus.folder}: its texts are tokens of '{tokens.encoder}' ({tokens.fingerprint}), and '{encoder.name}' "
            f"has another tokenizer ({own}); prepare the corpus with --encoder {encoder.name}"
        )
    if tokens.prompt != encoder.prompt("text"):
        raise EncoderError(
            f"{corpus.folder}: its texts begin with the prompt '{tokens.prompt}', and those of '{encoder.name}' with "
            f"'{encoder.prompt('text')}'; prepare the corpus with --prompt"
        )
    limit, cut = encoder.limit("text"), sum(shard.cut for shard in corpus.manifest.shards)
    if limit > tokens.limit and cut:
        raise ConfigError(
            f"max_length={limit}: {corpus.folder} was prepared with --length {tokens.limit}, and {cut} of its texts "
            f"may be longer; set max_length of the stage to {tokens.limit}, or prepare it with --length {limit}"
        )
