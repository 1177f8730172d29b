"""Leakage checks between rows added to train and dev or test: scored texts are never trained on.

The authors of the MAML-Align paper trained on translations of all questions of XQuAD, test folds included. Here this is
an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from metasearch.data.normalise import normalise
from metasearch.data.records import Candidate, Data, Question, RetrievalData, SimilarityData
from metasearch.data.translate.rows import Row, TranslatedRow
from metasearch.errors import DataError

Key = tuple[str, ...]
"""What two rows have in common that are the same but for how their texts are written."""


class HeldOut(NamedTuple):
    """The content of dev and test."""

    ids: Mapping[str, str]
    groups: Mapping[str, str]
    texts: Mapping[Key, str]


def held_out(parts: Mapping[str, Data]) -> HeldOut:
    """Return the content of parts by name, `dev` and `test`."""
    ids: dict[str, str] = {}
    groups: dict[str, str] = {}
    texts: dict[Key, str] = {}
    for name, data in parts.items():
        groups.update(dict.fromkeys(data.groups, name))
        if isinstance(data, RetrievalData):
            ids.update({question.id: name for question in data.questions})
        texts.update({_key(row): f"{called(row)} of {name}" for row in rows_of(data)})
    return HeldOut(ids, groups, texts)


def rows_of(data: Data) -> Iterator[Row]:
    """Yield the rows in data."""
    if isinstance(data, RetrievalData):
        yield from data.questions
        yield from data.candidates
    elif isinstance(data, SimilarityData):
        yield from data.pairs


def apart(rows: Iterable[TranslatedRow], held: HeldOut, drop: bool) -> tuple[list[TranslatedRow], int]:
    """Return rows that may be added to train, and the number of rows dropped because of held-out texts."""
    kept: list[TranslatedRow] = []
    left = 0
    for added in rows:
        for each in (added.row, added.origin):
            if each.group and each.group in held.groups:
                raise _leak(each, f"its article or row '{each.group}' stands in {held.groups[each.group]}")
            if isinstance(each, Question) and each.id in held.ids:
                raise _leak(each, f"its id stands in {held.ids[each.id]}")
            for answered in each.answers if isinstance(each, Candidate) else ():
                if answered in held.ids:
                    raise _leak(each, f"it answers '{answered}', which is in {held.ids[answered]}")
        where = held.texts.get(_key(added.origin)) or held.texts.get(_key(added.row))
        if where is None:
            kept.append(added)
        elif drop:
            left += 1
        else:
            same = "its source has" if held.texts.get(_key(added.origin)) else "its translation has"
            raise _leak(added.row, f"{same} the text of {where}; use overlap: drop to remove such rows")
    return kept, left


def called(row: Row) -> str:
    """Return what a row is called in a message."""
    if isinstance(row, Question):
        return f"question '{row.id}' in {row.language}, '{row.text[:60]}',"
    if isinstance(row, Candidate):
        return f"candidate '{row.id}' in {row.language}, '{(row.shown or row.text)[:60]}',"
    return f"pair '{row.group}' in {row.pair}, '{row.text1[:40]}' and '{row.text2[:40]}',"


def _leak(row: Row, why: str) -> DataError:
    return DataError(f"translate: {called(row)} cannot be added to train: {why}")


def _key(row: Row) -> Key:
    if isinstance(row, Question | Candidate):
        return type(row).__name__, row.language, normalise(row.text)
    # The order of the two says nothing.
    sides = zip(row.languages, map(normalise, row.texts), strict=True)
    return tuple(part for side in sorted(sides) for part in side)
