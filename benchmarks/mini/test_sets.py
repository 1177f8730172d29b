"""The texts that no encoder may be trained on: all files of the test sets, also those that no task reads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.config import registry
from metasearch.config.library import Library
from metasearch.data.formats.text_files import lines_of, read_json, table_rows
from metasearch.data.locate import locate
from metasearch.errors import DataError

Placed = Iterator[tuple[str, str]]
"""Texts, each with the place where it stands."""


@dataclass(frozen=True)
class TestSet:
    """A test set's texts, each with file and line; no training text may be a part of one of its `passages`."""

    __test__ = False  # it is no test of pytest's

    name: str
    texts: tuple[tuple[str, str], ...]
    passages: tuple[tuple[str, str], ...] = ()


def test_sets(data: Path) -> list[TestSet]:
    """Return Tatoeba, XQuAD-R, SemEval-2017, and dev and test of STS-b, each with all languages that are there.

    Raises:
        DataError: the files of one are missing or damaged.
    """
    xquad = _folder("lareqa", data)
    return [
        TestSet("Tatoeba (LASER)", tuple(_each(_folder("tatoeba", data), "tatoeba.*-eng.*", _whole_lines))),
        TestSet("XQuAD-R", tuple(_each(xquad, "*.json", _xquad)), tuple(_each(xquad, "*.json", _paragraphs))),
        TestSet("SemEval-2017", tuple(_each(_folder("sts17", data), "STS.input.*.txt", _columns))),
        TestSet("STS-b dev and test", tuple(_each(_folder("stsb-mt", data), "stsb-*-[dt]e[vs]*.csv", _rows))),
    ]


test_sets.__test__ = False  # type: ignore[attr-defined]


def _folder(task: str, data: Path) -> Path:
    library = Library()
    declared = library.task(task)
    expected = registry.load("readers", declared.reader).files(declared)
    return locate(declared, library.path("task", task), expected, str(data))


def _each(folder: Path, pattern: str, texts_of: Callable[[Path], Placed]) -> Placed:
    for path in sorted(folder.glob(pattern)):
        yield from texts_of(path)


def _whole_lines(path: Path) -> Placed:
    for number, line in enumerate(lines_of(path), 1):
        yield line, f"{path.name}:{number}"


def _columns(path: Path) -> Placed:
    for number, line in enumerate(lines_of(path), 1):
        yield from ((text, f"{path.name}:{number}") for text in line.split("\t")[:2])


def _rows(path: Path) -> Placed:
    for number, row in table_rows(path):
        yield from ((text, f"{path.name}:{number}") for text in row[:2])


def _xquad(path: Path) -> Placed:
    """Questions, answers' sentences and whole paragraphs; sentences as they are cut, and as they are listed."""
    for paragraph, place in _of_json(path):
        context = paragraph["context"]
        spans = (context[start:end] for start, end in paragraph["sentence_breaks"])
        asked = (question["question"] for question in paragraph["qas"])
        for text in (context, *spans, *paragraph.get("sentences", ()), *asked):
            yield text, place


def _paragraphs(path: Path) -> Placed:
    for paragraph, place in _of_json(path):
        yield paragraph["context"], place


def _of_json(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the paragraphs of an XQuAD-R file; the whole file is one line."""
    try:
        for a, article in enumerate(read_json(path)["data"]):
            for p, paragraph in enumerate(article["paragraphs"]):
                yield paragraph, f"{path.name}: data[{a}].paragraphs[{p}]"
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not as XQuAD-R is: {error!r}") from None
