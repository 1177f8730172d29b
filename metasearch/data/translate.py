"""Rows added to train in other languages, with a check that none of them leaks.

Retrieval takes the data's own rows with the same ids as perfect translations (`oracle`). Similarity translates pairs
within the source language by files. Rows are added after folds are cut, and held against dev and test before.

The authors of the MAML-Align paper trained on translations of all questions of XQuAD, test folds included. Here a
scored text that is trained on is an error.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from metasearch.config.task import ORACLE, Task, Translate
from metasearch.data.folds import Split
from metasearch.data.formats.blank import blank, normalise
from metasearch.data.formats.text_files import strip_text, table_rows
from metasearch.data.records import Candidate, Data, Labelled, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.errors import ConfigError, DataError
from metasearch.io import digest, fingerprint_of, near

log = logging.getLogger(__name__)

Record = Question | Candidate | ScoredPair
Key = tuple[str, ...]
"""What two rows have in common that are the same but for how their texts are written."""


class TranslatedRow(NamedTuple):
    """A row that is added to train, and the row that it translates."""

    row: Record
    origin: Record


@dataclass(frozen=True)
class Translations:
    """Rows that were added to train: how many, how many leaked or were replaced, and their hash."""

    block: Translate
    rows: int
    left_out: int
    own: int
    fingerprint: str

    @property
    def described(self) -> str:
        """Who translates what."""
        how = "oracle (the data's own rows)" if self.block.by == ORACLE else self.block.by
        return f"{self.block.source} into {', '.join(self.block.into)} by {how}"

    def __str__(self) -> str:
        named = f"{self.described}: {self.rows} rows, fingerprint {self.fingerprint}"
        held = f"; {self.left_out} dropped, because they are in dev or test" if self.left_out else ""
        return f"{named}{held}" + (f"; {self.own} of the data's own rows dropped" if self.own else "")


def with_source(task: Task) -> Task:
    """Return a task that also reads rows in the source language."""
    block = task.translate
    if block is None:
        return task
    pair = f"{block.source}-{block.source}"
    languages = [*task.languages, *([block.source] if block.source not in task.languages else [])]
    pairs = (*task.pairs, pair) if task.kind == "similarity" and pair not in task.pairs else task.pairs
    return task.model_copy(update={"languages": languages, "pairs": pairs})


def translate_train(records: Data, parts: Split, task: Task, folder: Path) -> tuple[Data, Split, Translations, Data]:
    """Return all data, its parts with translations in train, the additions, and train without them.

    `folder` has the data of the task, and its files with translations.
    """
    block = task.translate
    assert block is not None
    used = (
        [] if block.by == ORACLE else [fingerprint_files(translation_files(block, folder, each)) for each in block.into]
    )
    how = fingerprint_of([[block.model_dump_json(), records.fingerprint, *used]])
    made, done = add_translations(parts, task, folder)
    return replace(_scored(records, task), translated=how), made, done, _scored(parts.train, task)


def add_translations(parts: Split, task: Task, folder: Path) -> tuple[Split, Translations]:
    """Return the parts with the translations of train's rows in train, dev and test without the source's rows."""
    block, train = task.translate, parts.train
    assert block is not None
    assert isinstance(train, Labelled)
    kept = _without(train, block.into)
    own = len(_rows(train)) - len(_rows(kept))
    if isinstance(train, RetrievalData):
        found = list(_oracle_rows(train, block))
        own -= len(found)
    elif own and block.own is None:
        raise ConfigError(
            f"task '{task.name}': translate: train has {own} rows in {', '.join(block.into)} of its own; use own: drop"
            " to train on translations instead, or own: keep to translate only rows without one"
        )
    else:
        found = list(_file_rows(train, block, folder))
    if not found:
        what = "all have rows of their own" if block.own == "keep" else f"train has no rows in {block.source}"
        raise DataError(f"task '{task.name}': translate: there is nothing to translate: {what}")
    added, left = drop_leaked(found, held_out({"dev": parts.dev, "test": parts.test}), block.overlap == "drop")
    if block.own == "keep":
        kept, own = train, 0
    done = Translations(block, len(added), left, own, fingerprint_of(_cells(each.row) for each in added))
    dev, test = (_scored(part, task) for part in (parts.dev, parts.test))
    return Split(_with_rows(kept, [*_rows(kept), *(each.row for each in added)]), dev, test), done


def _oracle_rows(train: RetrievalData, block: Translate) -> Iterator[TranslatedRow]:
    """Yield a train part's own rows in other languages for source-language questions."""
    asked = {question.id: question for question in train.questions if question.language == block.source}
    for question in train.questions:
        if question.language in block.into and question.id in asked:
            yield TranslatedRow(question, asked[question.id])
    for candidate in train.candidates:
        ids = tuple(id for id in candidate.answers if id in asked and block.source in train.answers[id])
        if candidate.language in block.into and ids:
            yield TranslatedRow(replace(candidate, answers=ids), train.answers[ids[0]][block.source][0])


def _file_rows(train: SimilarityData, block: Translate, folder: Path) -> Iterator[TranslatedRow]:
    """Yield a train part's source-language pairs in every other language pair."""
    source = block.source
    origins = [pair for pair in train.pairs if pair.languages == (source, source)]
    texts = list(dict.fromkeys(text for pair in origins for text in pair.texts))
    tables = {code: read_translations(translation_files(block, folder, code), texts) for code in block.into}
    tables = {source: dict(zip(texts, texts, strict=True)), **tables}
    known = {(pair.group, frozenset(pair.languages)) for pair in train.pairs} if block.own == "keep" else set()
    for first in tables:
        for second in list(tables)[list(tables).index(first) :]:
            for pair in origins if (first, second) != (source, source) else ():
                if (pair.group, frozenset((first, second))) not in known:
                    text1, text2 = tables[first][pair.text1], tables[second][pair.text2]
                    name, languages = f"{first}-{second}", (first, second)
                    yield TranslatedRow(replace(pair, pair=name, languages=languages, text1=text1, text2=text2), pair)


def _scored(data: Data, task: Task) -> Labelled:
    """Return data without the rows that were read to be translated alone."""
    assert task.translate is not None
    assert isinstance(data, Labelled)
    if isinstance(data, SimilarityData):
        known = {frozenset(pair) for pair in task.language_pairs}
        return _with_rows(data, (pair for pair in data.pairs if frozenset(pair.languages) in known))
    return data if task.translate.source in task.languages else _without(data, [task.translate.source])


def _rows(data: Data) -> list[Record]:
    if isinstance(data, RetrievalData):
        return [*data.questions, *data.candidates]
    return list(data.pairs) if isinstance(data, SimilarityData) else []


def _with_rows(data: Labelled, rows: Iterable[Record]) -> Labelled:
    """Return data with these rows in place of its own."""
    new = list(rows)
    if isinstance(data, SimilarityData):
        return replace(data, pairs=tuple(row for row in new if isinstance(row, ScoredPair)))
    questions = tuple(row for row in new if isinstance(row, Question))
    return replace(data, questions=questions, candidates=tuple(row for row in new if isinstance(row, Candidate)))


def _without(data: Labelled, languages: Collection[str]) -> Labelled:
    """Return data without rows in some languages; a pair is dropped if either text is in one."""
    return _with_rows(data, (row for row in _rows(data) if not {code for code, _ in _sides(row)} & set(languages)))


def _sides(row: Record) -> list[tuple[str, str]]:
    """Return the language and text of each side of a row."""
    if isinstance(row, ScoredPair):
        return list(zip(row.languages, row.texts, strict=True))
    return [(row.language, row.text)]


def _cells(row: Record) -> list[str]:
    if isinstance(row, ScoredPair):
        return [row.pair, row.text1, row.text2, repr(row.score), row.group]
    answers = row.answers if isinstance(row, Candidate) else ()
    return [row.id, row.language, row.text, row.group, *answers]


# Leakage. Folds already separate articles, and ids if a reader puts all that has an id in one article.


def held_out(parts: Mapping[str, Data]) -> dict[Key, str]:
    """Return what each row of some parts by name, `dev` and `test`, is called in a message, by its key and its id."""
    held = {}
    for name, data in parts.items():
        for row in _rows(data):
            held[_key(row)] = f"{_called(row)} of {name}"
            if isinstance(row, Question):
                held[(row.id,)] = name
    return held


def drop_leaked(rows: Iterable[TranslatedRow], held: Mapping[Key, str], drop: bool) -> tuple[list[TranslatedRow], int]:
    """Return rows that may be added to train, and the number of rows dropped because of held-out texts."""
    kept: list[TranslatedRow] = []
    left = 0
    for added in rows:
        refused = f"translate: {_called(added.row)} cannot be added to train:"
        for uid in (added.row.id,) if isinstance(added.row, Question) else added.row.answers:
            if (uid,) in held:
                raise DataError(f"{refused} question '{uid}' is in {held[(uid,)]}, too; it must be in one article")
        sides = {"source": held.get(_key(added.origin)), "translation": held.get(_key(added.row))}
        which = next((side for side, where in sides.items() if where), None)
        if which is None:
            kept.append(added)
        elif drop:
            left += 1
        else:
            where = sides[which]
            raise DataError(f"{refused} its {which} has the text of {where}; use overlap: drop to remove such rows")
    return kept, left


def _called(row: Record) -> str:
    """Return what a row is called in a message."""
    if isinstance(row, ScoredPair):
        return f"pair '{row.group}' in {row.pair}, '{row.text1[:40]}' and '{row.text2[:40]}',"
    text = row.text if isinstance(row, Question) else row.shown or row.text
    return f"{type(row).__name__.lower()} '{row.id}' in {row.language}, '{text[:60]}',"


def _key(row: Record) -> Key:
    # The order of the two texts of a pair says nothing.
    sides = sorted((language, normalise(text)) for language, text in _sides(row))
    return type(row).__name__, *(part for side in sides for part in side)


# Files with translations: two columns for a pair of languages, or row-aligned files, one a language.


def translation_files(block: Translate, folder: Path, target: str) -> list[Path]:
    """Return the file with two columns, or the two aligned files, of a target language.

    `{language}` in the path makes it files that are aligned by rows: each cell of row i of the one language is the
    translation of the cell in the same place of the other. `{source}` and `{target}` make it a file with a text and
    its translation in the first two columns of each row.
    """
    named = block.path.replace("{source}", block.source).replace("{target}", target)
    return [
        folder / name for name in dict.fromkeys(named.replace("{language}", code) for code in (block.source, target))
    ]


def fingerprint_files(files: Sequence[Path]) -> str:
    """Return a hash of the files' content."""
    try:
        return fingerprint_of([["files", *map(digest, files)]])
    except OSError as error:
        hint = near(Path(error.filename))
        raise DataError(f"{error.filename}: the translations cannot be read: {error.strerror}{hint}") from None


def read_translations(files: Sequence[Path], texts: Sequence[str]) -> dict[str, str]:
    """Return text → translation, compared without white space at their ends.

    `DataError` where a file is damaged or has not all of them.
    """
    table, several = dict[str, str](), 0
    for text, translation in _aligned(*files) if len(files) == 2 else _columns(files[0]):
        several += table.setdefault(text, translation) != translation
    if several:
        log.warning("%s: %d texts have several translations; using the first", files[-1], several)
    if missing := [text for text in texts if text.strip() not in table]:
        raise DataError(
            f"{' and '.join(map(str, files))}: no translation of {len(missing)} of {len(texts)} texts, the first "
            f"'{missing[0][:80]}'"
        )
    return {text: table[text.strip()] for text in texts}


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for line, row in filter(itemgetter(1), table_rows(path)):
        if len(row) < 2:
            raise DataError(f"{path}:{line}: expected a text and its translation, got one column")
        yield strip_text(row[0], f"{path}:{line}"), strip_text(row[1], f"{path}:{line}")


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    own, its = list(table_rows(source)), list(table_rows(target))
    if len(own) != len(its):
        raise DataError(f"{source} and {target}: expected as many rows in both; there are {len(own)} and {len(its)}")
    for (line, row), (other, translated) in zip(own, its, strict=True):
        if len(row) != len(translated):
            raise DataError(
                f"{target}:{other}: expected {len(row)} columns, as in {source}:{line}; got {len(translated)}"
            )
        for text, translation in zip(row, translated, strict=True):
            if bool(held := blank(translation)) and not blank(text):
                raise DataError(f"{target}:{other}: expected the translation of '{text[:80]}', got {held}")
            yield text.strip(), translation.strip()
