"""Takes labels away from training data, to see what a few of them do.

A label is the answer of a question, or the score of a row of pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from metasearch.data.records import RetrievalData, SimilarityData
from metasearch.errors import DataError
from metasearch.spec.seeding import stream

Labelled = RetrievalData | SimilarityData
Key = TypeVar("Key")


def with_labels(train: Labelled, count: int, seed: int) -> Labelled:
    """Return train data with `count` questions of each language that have answers, or `count` rows of each pair.

    They are drawn by the seed, all in one order: translations of a question are chosen together, and what is chosen
    of a smaller number is chosen of a larger one, too. All candidates stay, as texts that may be mined negatives.

    Raises:
        DataError: a language has fewer questions with answers, or a language pair fewer rows.
    """
    if isinstance(train, SimilarityData):
        names = {languages: [pair.group for pair in own] for languages, own in train.by_languages.items()}
        rows = _first(names, count, seed)
        for languages, own in rows.items():
            _require(count, own, f"rows of {'-'.join(sorted(languages))}")
        chosen = (pair for pair in train.pairs if pair.group in rows[frozenset(pair.languages)])
        return replace(train, pairs=tuple(chosen))
    asked = {
        language: [question.id for question in own if question.id in train.answers]
        for language, own in train.questions_by_language.items()
    }
    ids = _first(asked, count, seed)
    for language, own in ids.items():
        _require(count, own, f"questions with answers in {language}")
    known = frozenset[str]().union(*ids.values())
    questions = (question for question in train.questions if question.id in ids[question.language])
    candidates = (replace(c, answers=tuple(own for own in c.answers if own in known)) for c in train.candidates)
    return replace(train, questions=tuple(questions), candidates=tuple(candidates))


def _first(named: Mapping[Key, Sequence[str]], count: int, seed: int) -> dict[Key, set[str]]:
    """Return the first `count` names of each list, all in one random order."""
    listed = list(dict.fromkeys(name for own in named.values() for name in own))
    place = {listed[i]: rank for rank, i in enumerate(stream(seed, "labels").permutation(len(listed)))}
    return {key: set(sorted(set(own), key=place.__getitem__)[:count]) for key, own in named.items()}


def _require(count: int, found: set[str], what: str) -> None:
    if len(found) < count:
        raise DataError(f"labels: {count} {what} are asked for; train has {len(found)}")
