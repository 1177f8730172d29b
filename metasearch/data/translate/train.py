"""Add a task's declared translations to the train part of a fold."""

from collections.abc import Sequence
from dataclasses import dataclass

from metasearch.config import registry, yaml
from metasearch.config.task import ORACLE, Task, Translate
from metasearch.data.folds import Split
from metasearch.data.formats.blank import blank
from metasearch.data.records import Candidate, Data, Labelled, RetrievalData, ScoredPair, SimilarityData
from metasearch.data.translate import rows
from metasearch.data.translators.base import Places, Translator
from metasearch.errors import ConfigError, DataError
from metasearch.io import fingerprint_of

_COMMAND = "command: the translator by a program went; write its translations to files and use by: files"


def translations(translator: Translator, texts: Sequence[str], source: str, target: str) -> dict[str, str]:
    """Return text → translation for each distinct text."""
    texts = list(dict.fromkeys(texts))
    found = translator.translate(texts, source, target) if texts else []
    if len(found) != len(texts):
        raise DataError(f"translate: the translator gave {len(found)} translations of {len(texts)} texts")
    for text, translation in zip(texts, found, strict=True):
        if held := blank(translation):
            raise DataError(f"translate: '{text[:80]}' from {source} into {target}: expected a translation, got {held}")
    return {text: translation.strip() for text, translation in zip(texts, found, strict=True)}


@dataclass(frozen=True)
class Translations:
    """What was added to a train part.

    Attributes:
        block: as it was declared.
        rows: how many rows were added.
        left_out: dropped rows, whose text is in dev or test.
        own: dropped rows of train in these languages.
        fingerprint: of the rows that were added.
    """

    block: Translate
    rows: int
    left_out: int
    own: int
    fingerprint: str

    def __str__(self) -> str:
        named = f"{described(self.block)}: {self.rows} rows, fingerprint {self.fingerprint}"
        held = f"; {self.left_out} dropped, because they are in dev or test" if self.left_out else ""
        return f"{named}{held}" + (f"; {self.own} of the data's own rows dropped" if self.own else "")


def described(block: Translate) -> str:
    """Return who translates what."""
    how = "oracle (the data's own rows)" if block.by == ORACLE else block.by
    return f"{block.source} into {', '.join(block.into)} by {how}"


def translator_of(block: Translate, where: str, places: Places) -> Translator | None:
    """Return a block's translator, None for an oracle."""
    if block.by == ORACLE:
        return None
    if block.by == "command":
        raise ConfigError(f"{where}: translate: by: {_COMMAND}")
    try:
        registry.require("translators", block.by, also=(ORACLE,))
        kind = registry.load("translators", block.by).TRANSLATOR
    except ConfigError as error:
        raise ConfigError(f"{where}: translate: by: {error}") from None
    made: Translator = kind(yaml.check(block.options, kind.Options, f"{where}: translate: options"), places)
    return made


def provenance(block: Translate, translator: Translator | None, source_rows: str) -> str:
    """Return the dependencies of all train parts beside the data: block, translator, source."""
    used = [translator.fingerprint(block.source, target) for target in block.into] if translator else []
    return fingerprint_of([[block.model_dump_json(), source_rows, *used]])


def add_translations(parts: Split, task: Task, translator: Translator | None) -> tuple[Split, Translations]:
    """Return the parts with the translations of train's rows in train, dev and test without the source's rows."""
    block = task.translate
    assert block is not None
    assert isinstance(parts.train, Labelled)
    train = parts.train
    kept = rows.without(train, block.into)
    own = len(list(rows.rows_of(train))) - len(list(rows.rows_of(kept)))
    if own and block.own is None and translator is not None:
        raise ConfigError(
            f"task '{task.name}': translate: train has {own} rows in {', '.join(block.into)} of its own; use own: drop"
            " to train on translations instead, or own: keep to translate only rows without one"
        )
    found = _rows(train, block, translator)
    if not found:
        what = "all have rows of their own" if block.own == "keep" else f"train has no rows in {block.source}"
        raise DataError(f"task '{task.name}': translate: there is nothing to translate: {what}")
    held = rows.held_out({"dev": parts.dev, "test": parts.test})
    added, left = rows.drop_leaked(found, held, block.overlap == "drop")
    if block.own == "keep":
        kept = train
    taken = len(found) if translator is None else 0  # an oracle's rows are train's own
    gone = 0 if block.own == "keep" else own - taken
    fingerprint = fingerprint_of(_texts(each.row) for each in added)
    done = Translations(block, len(added), left, gone, fingerprint)
    dev, test = (scored(part, task) for part in (parts.dev, parts.test))
    return Split(rows.with_rows(kept, [*rows.rows_of(kept), *(each.row for each in added)]), dev, test), done


def with_source(task: Task) -> Task:
    """Return a task that also reads rows in the source language."""
    block = task.translate
    if block is None:
        return task
    pair = f"{block.source}-{block.source}"
    languages = [*task.languages, *([block.source] if block.source not in task.languages else [])]
    pairs = (*task.pairs, pair) if task.kind == "similarity" and pair not in task.pairs else task.pairs
    return task.model_copy(update={"languages": languages, "pairs": pairs})


def scored(data: Data, task: Task) -> Labelled:
    """Return data without the rows that were read to be translated alone."""
    assert task.translate is not None
    assert isinstance(data, Labelled)
    if isinstance(data, SimilarityData):
        known = {frozenset(pair) for pair in task.language_pairs}
        return rows.with_rows(data, (pair for pair in data.pairs if frozenset(pair.languages) in known))
    return data if task.translate.source in task.languages else rows.without(data, [task.translate.source])


def _rows(train: Labelled, block: Translate, translator: Translator | None) -> list[rows.TranslatedRow]:
    retrieval, source, into = isinstance(train, RetrievalData), block.source, block.into
    if translator is None:
        make = rows.oracle_retrieval if retrieval else rows.oracle_similarity
        return list(make(train, source, into))  # type: ignore[arg-type]  # each takes its own kind

    def translate(texts: Sequence[str], language: str) -> dict[str, str]:
        return translations(translator, texts, source, language)

    made = rows.retrieval_rows if retrieval else rows.similarity_rows
    return list(made(train, source, into, block.own == "keep", translate))  # type: ignore[arg-type]


def _texts(row: rows.Record) -> list[str]:
    if isinstance(row, ScoredPair):
        return [row.pair, row.text1, row.text2, repr(row.score), row.group]
    answers = row.answers if isinstance(row, Candidate) else ()
    return [row.id, row.language, row.text, row.group, *answers]
