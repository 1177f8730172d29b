"""Rows added to train: translated rows of the source language or an oracle's, and checks that none of them leaks.

Rows of a train part are translated after folds are cut, and held against dev and test before they are added. A
translated row keeps its id, its article (`group`) and its answers. Only candidates that answer a question are
translated: episodes use no others. If a candidate's text is a sentence followed by its paragraph, both are translated
separately, so that a paragraph is translated once.

The authors of the MAML-Align paper trained on translations of all questions of XQuAD, test folds included. Here a
scored text that is trained on is an error.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
TranslateTexts = Callable[[str, Sequence[str]], dict[str, str]]
"""Language, texts of the source language → text → translation."""
Key = tuple[str, ...]
"""What two rows have in common that are the same but for how their texts are written."""


class TranslatedRow(NamedTuple):
    """A row that is added to train, and the row that it translates."""

    row: Record
    origin: Record


def _rows_of(data: Data) -> Iterator[Record]:
    """Yield the rows in data."""
    if isinstance(data, RetrievalData):
        yield from data.questions
        yield from data.candidates
    elif isinstance(data, SimilarityData):
        yield from data.pairs


def _with_rows(data: Labelled, rows: Iterable[Record]) -> Labelled:
    """Return data with these rows in place of its own."""
    new = list(rows)
    if isinstance(data, SimilarityData):
        return replace(data, pairs=tuple(row for row in new if isinstance(row, ScoredPair)))
    questions = tuple(row for row in new if isinstance(row, Question))
    return replace(data, questions=questions, candidates=tuple(row for row in new if isinstance(row, Candidate)))


def _without(data: Labelled, languages: Collection[str]) -> Labelled:
    """Return data without rows in some languages; a pair is dropped if either text is in one."""
    left = set(languages)
    return _with_rows(data, (row for row in _rows_of(data) if not left & _languages(row)))


def _languages(row: Record) -> set[str]:
    return set(row.languages) if isinstance(row, ScoredPair) else {row.language}


def _retrieval_rows(
    train: RetrievalData, source: str, into: Sequence[str], keep: bool, translate: TranslateTexts
) -> Iterator[TranslatedRow]:
    """Yield the questions and candidates of a train part in other languages."""
    for language in into:
        asked = {q.id for q in train.questions if q.language == language} if keep else set()
        answered = {q for q, found in train.answers.items() if language in found} if keep else set()
        questions = [q for q in train.questions if q.language == source and q.id not in asked]
        # A candidate is translated with all of its questions, as it would be a wrong answer to the others.
        wanted = [c for c in train.candidates if c.language == source and not answered.issuperset(c.answers)]
        table = translate(language, [*(q.text for q in questions), *(text for c in wanted for text in _texts(c))])
        for question in questions:
            yield TranslatedRow(replace(question, language=language, text=table[question.text]), question)
        for candidate in wanted:
            head, gap, tail = _parts(candidate)
            text = table[head] + gap + (table[tail] if tail else "")
            shown = table[candidate.shown] if candidate.shown else ""
            # An id is unique within the data; this one also tells where the candidate comes from.
            uid = f"{candidate.id}>{language}"
            row = replace(candidate, id=uid, language=language, text=text, shown=shown)
            yield TranslatedRow(row, candidate)


def _parts(candidate: Candidate) -> tuple[str, str, str]:
    """Split a candidate's displayed text into its text, white space and the rest, if it starts with the text."""
    rest = candidate.text.removeprefix(candidate.shown)
    if rest == candidate.text:
        return candidate.text, "", ""
    tail = rest.lstrip()
    return candidate.shown, rest[: len(rest) - len(tail)], tail


def _texts(candidate: Candidate) -> list[str]:
    head, _, tail = _parts(candidate)
    return list(filter(None, [head, tail, candidate.shown]))


def _similarity_rows(
    train: SimilarityData, source: str, into: Sequence[str], keep: bool, translate: TranslateTexts
) -> Iterator[TranslatedRow]:
    """Yield a train part's source-language pairs in every other language pair."""
    origins = [pair for pair in train.pairs if pair.languages == (source, source)]
    texts = list(dict.fromkeys(text for pair in origins for text in pair.texts))
    tables = {source: dict(zip(texts, texts, strict=True)), **{code: translate(code, texts) for code in into}}
    known = {(pair.group, frozenset(pair.languages)) for pair in train.pairs} if keep else set()
    for languages in _pairs(source, into):
        first, second = languages
        for pair in origins:
            if (pair.group, frozenset(languages)) not in known:
                text1, text2 = tables[first][pair.text1], tables[second][pair.text2]
                name = f"{first}-{second}"
                yield TranslatedRow(replace(pair, pair=name, languages=languages, text1=text1, text2=text2), pair)


def _pairs(source: str, into: Sequence[str]) -> list[tuple[str, str]]:
    codes = [source, *into]
    return [(one, other) for i, one in enumerate(codes) for other in codes[i:] if (one, other) != (source, source)]


def _oracle_retrieval(train: RetrievalData, source: str, into: Sequence[str]) -> Iterator[TranslatedRow]:
    """Yield a train part's own rows in other languages for source-language questions."""
    asked = {question.id: question for question in train.questions if question.language == source}
    for question in train.questions:
        if question.language in into and question.id in asked:
            yield TranslatedRow(question, asked[question.id])
    for candidate in train.candidates:
        ids = tuple(id for id in candidate.answers if id in asked and source in train.answers[id])
        if candidate.language in into and ids:
            yield TranslatedRow(replace(candidate, answers=ids), train.answers[ids[0]][source][0])


def _oracle_similarity(train: SimilarityData, source: str, into: Sequence[str]) -> Iterator[TranslatedRow]:
    """Yield a train part's own pairs in other languages for source-language rows."""
    origins = {pair.group: pair for pair in train.pairs if pair.languages == (source, source)}
    wanted = {frozenset(pair) for pair in _pairs(source, into)}
    for pair in train.pairs:
        if frozenset(pair.languages) in wanted and pair.group in origins:
            yield TranslatedRow(pair, origins[pair.group])


# Leakage. Folds already separate articles, and ids if a reader puts all that has an id in one article.


def held_out(parts: Mapping[str, Data]) -> dict[Key, str]:
    """Return what each row of some parts by name, `dev` and `test`, is called in a message, by its key and its id."""
    held = {}
    for name, data in parts.items():
        for row in _rows_of(data):
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
        which, where = "source", held.get(_key(added.origin))
        if where is None:
            which, where = "translation", held.get(_key(added.row))
        if where is None:
            kept.append(added)
        elif drop:
            left += 1
        else:
            raise DataError(f"{refused} its {which} has the text of {where}; use overlap: drop to remove such rows")
    return kept, left


def _called(row: Record) -> str:
    """Return what a row is called in a message."""
    if isinstance(row, Question):
        return f"question '{row.id}' in {row.language}, '{row.text[:60]}',"
    if isinstance(row, Candidate):
        return f"candidate '{row.id}' in {row.language}, '{(row.shown or row.text)[:60]}',"
    return f"pair '{row.group}' in {row.pair}, '{row.text1[:40]}' and '{row.text2[:40]}',"


def _key(row: Record) -> Key:
    if isinstance(row, Question | Candidate):
        return type(row).__name__, row.language, normalise(row.text)
    # The order of the two says nothing.
    sides = zip(row.languages, map(normalise, row.texts), strict=True)
    return tuple(part for side in sorted(sides) for part in side)


# Files with translations: two columns for a pair of languages, or row-aligned files, one a language.


class TranslationFiles:
    """Looks texts up in files that somebody translated before.

    `{language}` in the path makes it files that are aligned by rows: each cell of row i of the one language is the
    translation of the cell in the same place of the other. `{source}` and `{target}` make it a file with a text and
    its translation in the first two columns of each row. Texts are compared without white space at their ends.
    """

    def __init__(self, path: str, folder: Path) -> None:
        self._path, self._folder = path, folder

    def fingerprint(self, source: str, target: str) -> str:
        """Return a hash of the files' content."""
        try:
            return fingerprint_of([["files", *map(digest, self._files(source, target))]])
        except OSError as error:
            hint = near(Path(error.filename))
            raise DataError(f"{error.filename}: the translations cannot be read: {error.strerror}{hint}") from None

    def translate(self, source: str, target: str, texts: Sequence[str]) -> dict[str, str]:
        """Return text → translation; `DataError` where a file is missing or damaged, or has not all of them."""
        table, several = dict[str, str](), 0
        files = self._files(source, target)
        for text, translation in _aligned(*files) if len(files) == 2 else _columns(files[0]):
            several += table.setdefault(text, translation) != translation
        if several:
            log.warning("%s: %d texts have several translations; using the first", files[-1], several)
        texts = list(dict.fromkeys(texts))
        if missing := [text for text in texts if text.strip() not in table]:
            raise DataError(
                f"{' and '.join(map(str, files))}: no translation from {source} into {target} of {len(missing)} of "
                f"{len(texts)} texts, the first '{missing[0][:80]}'"
            )
        return {text: table[text.strip()] for text in texts}

    def _files(self, source: str, target: str) -> list[Path]:
        named = self._path.replace("{source}", source).replace("{target}", target)
        names = dict.fromkeys(named.replace("{language}", language) for language in (source, target))
        return [self._folder / name for name in names]


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    rows = list(table_rows(path))
    while rows and not rows[-1][1]:
        rows.pop()
    if not rows:
        raise DataError(f"{path}: the file is empty")
    return rows


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for line, row in filter(itemgetter(1), _read_rows(path)):
        if len(row) < 2:
            raise DataError(f"{path}:{line}: expected a text and its translation, got one column")
        yield strip_text(row[0], f"{path}:{line}"), strip_text(row[1], f"{path}:{line}")


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    own, its = _read_rows(source), _read_rows(target)
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


# The train part of a fold.


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


def translate_train(records: Data, parts: Split, task: Task, folder: Path) -> tuple[Data, Split, Translations, Data]:
    """Return all data, its parts with translations in train, the additions, and train without them.

    `folder` has the data of the task, and its files with translations.
    """
    block = task.translate
    assert block is not None
    files = None if block.by == ORACLE else TranslationFiles(block.path, folder)
    used = [files.fingerprint(block.source, target) for target in block.into] if files else []
    how = fingerprint_of([[block.model_dump_json(), records.fingerprint, *used]])
    made, done = add_translations(parts, task, files)
    return replace(_scored(records, task), translated=how), made, done, _scored(parts.train, task)


def add_translations(parts: Split, task: Task, files: TranslationFiles | None) -> tuple[Split, Translations]:
    """Return the parts with the translations of train's rows in train, dev and test without the source's rows."""
    block = task.translate
    assert block is not None
    assert isinstance(parts.train, Labelled)
    train = parts.train
    kept = _without(train, block.into)
    own = len(list(_rows_of(train))) - len(list(_rows_of(kept)))
    if own and block.own is None and files is not None:
        raise ConfigError(
            f"task '{task.name}': translate: train has {own} rows in {', '.join(block.into)} of its own; use own: drop"
            " to train on translations instead, or own: keep to translate only rows without one"
        )
    found = _rows(train, block, files)
    if not found:
        what = "all have rows of their own" if block.own == "keep" else f"train has no rows in {block.source}"
        raise DataError(f"task '{task.name}': translate: there is nothing to translate: {what}")
    held = held_out({"dev": parts.dev, "test": parts.test})
    added, left = drop_leaked(found, held, block.overlap == "drop")
    if block.own == "keep":
        kept = train
    taken = len(found) if files is None else 0  # an oracle's rows are train's own
    gone = 0 if block.own == "keep" else own - taken
    fingerprint = fingerprint_of(_cells(each.row) for each in added)
    done = Translations(block, len(added), left, gone, fingerprint)
    dev, test = (_scored(part, task) for part in (parts.dev, parts.test))
    return Split(_with_rows(kept, [*_rows_of(kept), *(each.row for each in added)]), dev, test), done


def with_source(task: Task) -> Task:
    """Return a task that also reads rows in the source language."""
    block = task.translate
    if block is None:
        return task
    pair = f"{block.source}-{block.source}"
    languages = [*task.languages, *([block.source] if block.source not in task.languages else [])]
    pairs = (*task.pairs, pair) if task.kind == "similarity" and pair not in task.pairs else task.pairs
    return task.model_copy(update={"languages": languages, "pairs": pairs})


def _scored(data: Data, task: Task) -> Labelled:
    """Return data without the rows that were read to be translated alone."""
    assert task.translate is not None
    assert isinstance(data, Labelled)
    if isinstance(data, SimilarityData):
        known = {frozenset(pair) for pair in task.language_pairs}
        return _with_rows(data, (pair for pair in data.pairs if frozenset(pair.languages) in known))
    return data if task.translate.source in task.languages else _without(data, [task.translate.source])


def _rows(train: Labelled, block: Translate, files: TranslationFiles | None) -> list[TranslatedRow]:
    retrieval, source, into = isinstance(train, RetrievalData), block.source, block.into
    if files is None:
        make = _oracle_retrieval if retrieval else _oracle_similarity
        return list(make(train, source, into))  # type: ignore[arg-type]  # each takes its own kind
    made = _retrieval_rows if retrieval else _similarity_rows
    keep = block.own == "keep"
    return list(made(train, source, into, keep, partial(files.translate, source)))  # type: ignore[arg-type]


def _cells(row: Record) -> list[str]:
    if isinstance(row, ScoredPair):
        return [row.pair, row.text1, row.text2, repr(row.score), row.group]
    answers = row.answers if isinstance(row, Candidate) else ()
    return [row.id, row.language, row.text, row.group, *answers]
