"""Makes longer training pairs: lines of 2 to 5 pairs of the same language and corpus, joined by a space.

All languages share the English joins, so a teacher reads few distinct texts. A part of the joins is a LAReQA candidate:
a sentence, then its paragraph. Its English side is the sentence alone; each paragraph gives two candidates. Pairs that
`metasearch distill` holds out with the same seed are in no join.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.mini.corpus_lines import Line, read_lines, write_lines
from metasearch.config.distillation import CorpusSettings
from metasearch.config.seeding import stream
from metasearch.data.parallel.corpus import read_corpus
from metasearch.errors import DataError
from metasearch.io.output import whole

LONG = ("ntrex", "flores", "tico19")
"""Corpora of whole articles and long sentences; the others are single, short sentences."""
SIZES = (2, 5)
_TRIES = 10
_SMALL = 20


@dataclass(frozen=True)
class Settings:
    """Number and size of joins.

    Attributes:
        share: joined lines for each line of a long corpus.
        others: joined lines for each line of the other corpora.
        front: share of joins that become two candidates.
        characters: maximum of a side.
        words: maximum of the English side.
    """

    share: float = 1.0
    others: float = 0.05
    front: float = 0.5
    characters: int = 900
    words: int = 180
    seed: int = 0

    def of(self, corpus: str) -> float:
        """Return the joined lines for each line of a corpus."""
        return self.share if corpus in LONG else self.others


@dataclass(frozen=True)
class Pool:
    """English sentences with translations in the same languages: language → translation of each sentence."""

    corpus: str
    texts: tuple[str, ...]
    renditions: dict[str, tuple[str, ...]]


def pools(lines: Sequence[Line], held: frozenset[str] = frozenset()) -> Iterator[Pool]:
    """Yield pools, none of which shares a sentence of a corpus and a language with another.

    Sentences with the same languages form a pool; fewer than 20 sentences serve each language alone. The first
    translation of a sentence into a language counts. English sentences in `held` are dropped.
    """
    table: dict[str, dict[str, dict[str, str]]] = {}
    for line in lines:
        if line.source not in held:
            table.setdefault(line.corpus, {}).setdefault(line.source, {}).setdefault(line.language, line.target)
    for corpus, sentences in table.items():
        by_languages: dict[tuple[str, ...], list[str]] = {}
        for text, translations in sentences.items():
            by_languages.setdefault(tuple(sorted(translations)), []).append(text)
        small: dict[tuple[str, ...], list[str]] = {}
        for languages, texts in by_languages.items():
            if len(texts) < _SMALL and len(languages) > 1:
                for language in languages:
                    small.setdefault((language,), []).extend(texts)
        alone = [code for code in by_languages if len(code) == 1]
        for code in alone:
            small.setdefault(code, [])[:0] = by_languages.pop(code)
        large = {languages: texts for languages, texts in by_languages.items() if len(texts) >= _SMALL}
        for languages, texts in sorted({**large, **small}.items()):
            renditions = {code: tuple(sentences[text][code] for text in texts) for code in languages}
            yield Pool(corpus, tuple(texts), renditions)


def joins(pool: Pool, settings: Settings) -> Iterator[list[int]]:
    """Yield joins as numbers of sentences; of a candidate the first one comes again in its place."""
    rng = stream(settings.seed, "joined", pool.corpus, *sorted(pool.renditions))
    sides = (pool.texts, *pool.renditions.values())
    characters = np.max([[len(text) for text in side] for side in sides], axis=0)
    words = np.array([len(text.split()) for text in pool.texts])
    deck = _shuffled_again_and_again(len(pool.texts), rng)
    for _ in range(round(settings.of(pool.corpus) * len(pool.texts))):
        size = int(rng.integers(SIZES[0], SIZES[1] + 1))
        front = bool(rng.random() < settings.front)
        chosen: list[int] = []
        # What is too long for the rest of the room is passed over, and comes again with the next shuffle.
        for _ in range(size + _TRIES):
            item = next(deck)
            wanted = [*chosen, item]
            made = [[first, *wanted] for first in wanted[:2]] if front else [wanted]
            fits = all(
                characters[one].sum() + len(one) - 1 <= settings.characters and words[one].sum() <= settings.words
                for one in made
            )
            if fits and item not in chosen:
                chosen.append(item)
            if len(chosen) == size:
                break
        if len(chosen) >= SIZES[0]:
            whole_text = rng.permutation(chosen).tolist()
            # Two candidates of one paragraph differ in nothing but what is in front.
            yield from ([[first, *whole_text] for first in chosen[:2]] if front else [whole_text])


def joined(lines: Sequence[Line], settings: Settings, held: frozenset[str] = frozenset()) -> list[Line]:
    """Return the joined lines of all languages; arguments as those of `pools` and `joins`."""
    by_language: dict[str, list[Line]] = {}
    for pool in pools(lines, held):
        for chosen in joins(pool, settings):
            # A sentence before its paragraph is to be found by the sentence.
            source = pool.texts[chosen[0]] if chosen[0] in chosen[1:] else " ".join(pool.texts[i] for i in chosen)
            for language, side in pool.renditions.items():
                own = by_language.setdefault(language, [])
                path = Path(f"joined.en-{language}.tsv")
                target = " ".join(side[i] for i in chosen)
                own.append(Line(path, len(own) + 1, language, source, target, pool.corpus))
    return [line for language in sorted(by_language) for line in by_language[language]]


def held_out(corpus: Path, dev: int, seed: int) -> frozenset[str]:
    """Return the English sentences that a distillation of this seed holds out of a corpus for its dev score.

    With the joins among its files it holds out a part of these, and of the joins those of the lowest rank.
    """
    if not dev:
        return frozenset()
    _, dev_pairs = read_corpus([corpus], CorpusSettings()).hold_out(dev, seed)
    return frozenset(pair.source for pair in dev_pairs)


def make(corpus: Path, output: Path, settings: Settings, dev: int = 0) -> str:
    """Write the joins of a corpus to a new folder; returns how many there are, in words.

    Raises:
        DataError: a file is missing or damaged, or there is nothing to join.
        RunFolderError: the folder is there already.
    """
    lines = list(read_lines(corpus))
    made = joined(lines, settings, held_out(corpus, dev, settings.seed))
    if not made:
        raise DataError(f"{corpus}: nothing to join: no two sentences of a corpus that fit in one line")
    with whole(output) as folder:
        write_lines(folder, made)
    texts = {line.source for line in made}
    longest = max(max(len(line.source), len(line.target)) for line in made)
    mean = np.mean([len(text.split()) for text in texts])
    return (
        f"{len(lines):,} lines, {len(made):,} joined ones of {len(texts):,} English texts in {output};"
        f" {mean:.0f} English words in the mean, at most {longest} characters"
    )


def _shuffled_again_and_again(count: int, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from rng.permutation(count).tolist()
