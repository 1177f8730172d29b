"""Small corpora made by hand, and an encoder whose vectors are given.

Question i is asked in every language; its answer is one sentence in every language. Texts say what they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import cos, sin

import numpy as np

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.recipe import Episodes, Loss
from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.episodes.samplers import EpisodeSampler, PairSampler
from metasearch.episodes.triplets import TripletSampler

LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr")


def retrieval(
    questions: int = 12, languages: Sequence[str] = LANGUAGES, answer_of: Sequence[int] | None = None, fillers: int = 2
) -> RetrievalData:
    """Make questions q0, q1, ..., two to an article, and candidates in the order of languages, then of sentences.

    Args:
        questions: how many, in each language.
        languages: of questions and candidates.
        answer_of: which sentence answers question i; sentence i by default.
        fillers: sentences of each language that answer nothing.
    """
    sentences = list(answer_of) if answer_of is not None else list(range(questions))
    asked = [
        Question(f"q{i}", code, f"{code} question {i}", f"a{i // 2}") for code in languages for i in range(questions)
    ]
    pool = [
        Candidate(
            f"{code}-s{s}",
            code,
            f"{code} sentence {s}",
            f"a{sentences.index(s) // 2}",
            tuple(f"q{i}" for i, answer in enumerate(sentences) if answer == s),
        )
        for code in languages
        for s in dict.fromkeys(sentences)
    ]
    rest = [Candidate(f"{code}-f{i}", code, f"{code} filler {i}", "a0") for code in languages for i in range(fillers)]
    return RetrievalData(tuple(asked), (*pool, *rest))


def similarity(rows: int = 10, pairs: Sequence[str] = ("en-en", "ar-ar", "es-es", "ar-en", "es-en")) -> SimilarityData:
    """Make scored pairs of each language pair; in every second row the texts stand in the other order."""
    made = []
    for name in pairs:
        first, second = name.split("-")
        for i in range(rows):
            languages = (first, second) if i % 2 == 0 else (second, first)
            texts = (f"{name} {languages[0]} left {i}", f"{name} {languages[1]} right {i}")
            made.append(ScoredPair(name, languages, *texts, i / (rows - 1), f"row {i}"))
    return SimilarityData(tuple(made))


def episodes_of(
    data: RetrievalData | SimilarityData,
    *arrangements: str,
    phase: str = "meta-train",
    seed: int = 0,
    margin: float = 1.0,
    embed: "FakeEncoder | None" = None,
    **settings: object,
) -> EpisodeSampler:
    """Return the sampler of a phase over arrangements in the papers' notation."""
    how = Episodes(**settings)
    if isinstance(data, RetrievalData):
        sets = TripletSampler(data, how, Loss(margin=margin), embed.encode if embed else None)
    else:
        sets = PairSampler(data, how)
    return EpisodeSampler(sets, [Arrangement.parse(text) for text in arrangements], how, phase, seed)


variant = Variant.parse
"""Reads a variant such as `el_{ar,el}`."""


def at_angle(angle: float) -> list[float]:
    """Return the unit vector at an angle: the cosine of two is that of the angle between them."""
    return [cos(angle), sin(angle)]


class FakeEncoder:
    """An encoder that gives each text the vector it was told, and counts how often it is asked for each.

    Args:
        vectors: of each text. They can be replaced, as training does with those of a real encoder.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def encode(self, texts: Sequence[str], role: str, batch_size: int = 64) -> np.ndarray:
        self.calls.append((role, tuple(texts)))
        return np.array([self.vectors[text] for text in texts], np.float32)

    @property
    def times_encoded(self) -> Counter:
        """How often each (role, text) was handed over; texts that a call repeats count once in it."""
        return Counter((role, text) for role, texts in self.calls for text in dict.fromkeys(texts))
