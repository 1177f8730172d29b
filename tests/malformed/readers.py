"""Damaged files of every reader's format."""

from functools import partial
from pathlib import Path

from helpers import formats
from malformed.row import Row, put, spoil

CHECK = "show small --check --include TMP"


def _given(form: str, damage, folder: Path) -> None:
    formats.copy(form, folder)
    put(folder / "small.yaml", formats.declared(formats.task_of(form), data=form))
    damage(folder / form)


def _row(form: str, what: str, damage, says: str, lines: int = 1) -> Row:
    return Row(f"{form}, {what}", CHECK, 3, says, partial(_given, form, damage), lines=lines)


def _anywhere(form: str) -> list[Row]:
    """Return what can be wrong with a file of any format."""
    name = formats.files(form)[0]
    at = rf"{form}/{name}".replace(".", r"\.")
    empty = f"{at}: not JSON: Expecting value" if form == "xquad-r" else f"{at}: (the file is empty|expected rows)"
    # The names of two files of a pair differ in a word.
    either = at.replace("input", "(input|gs)")
    blank = f"{either}(:[12])?: (not JSON: Expecting value|expected|the header|the file is empty)"
    return [
        _row(
            form,
            "a file is missing",
            lambda folder: (folder / name).unlink(),
            f"(missing {name}|no files of task)",
            lines=2,
        ),
        _row(form, "a folder in place of a file", spoil(name, None), f"{at}: cannot be read: Is a directory"),
        _row(form, "a file that is empty", spoil(name, ""), empty),
        _row(form, "a file that is blank", spoil(name, " \n"), blank),
        _row(form, "a file in UTF-32", spoil(name, "\ufeffx\n".encode("utf-32-le")), f"{at}:1: not UTF-8: byte 0xff"),
        _row(form, "a byte that is no UTF-8", spoil(name, b"\x80"), f"{at}:1: not UTF-8: byte 0x80"),
        _row(
            form,
            "a file of NUL characters",
            spoil(name, "\0\0"),
            f"{either}(:1)?: (not JSON|not UTF-8 text: it has a NUL character)",
        ),
    ]


def _lines(form: str, name: str) -> list[Row]:
    """Return what can be wrong with a file of JSON lines."""
    at = rf"{name}:1: "
    cases = [
        ("a list in place of an object", "[]\n", "expected an object in braces"),
        ("half an object", '{"question": "a"\n', "not JSON: .* at column"),
        ("a key twice", '{"answer": "a", "answer": "b"}\n', "the key 'answer' is duplicated"),
        ("a number that JSON has not", '{"question": NaN}\n', "question: input should be a valid string"),
        ("brackets without end", "[" * 100_000 + "\n", "not JSON: it nests too deep"),
        ("a whole number of 5,000 digits", '{"score": ' + "1" * 5000 + "}\n", "JSON|digit|number"),
    ]
    return [_row(form, what, spoil(name, text), at + says) for what, text, says in cases]


TATOEBA = {"tatoeba.deu-eng.deu": "Hallo.\nDanke.\n", "tatoeba.deu-eng.eng": "Hello.\nThanks.\n"}


def _tatoeba(what: str, given: dict[str, str | bytes | None], says: str, lines: int = 1, only: str = "") -> Row:
    declared = formats.declared(formats.translation("deu"), data="there")
    files = {f"there/{name}": text for name, text in {**TATOEBA, **given}.items() if name != only}
    return Row(f"tatoeba, {what}", CHECK, 3, says, {"small.yaml": declared, **files}, lines=lines)


_DEU, _ENG = TATOEBA
ROWS = [
    *(row for form in ("xquad-r", "jsonl-pairs", "csv-labelled", "semeval2017") for row in _anywhere(form)),
    *_lines("jsonl-paragraphs", "el.jsonl"),
    _tatoeba("one side is missing", {}, f"missing {_ENG}", lines=2, only=_ENG),
    _tatoeba("a line too few", {_DEU: "Hallo.\n"}, f"{_DEU}: expected 2 lines, as many as in {_ENG}; got 1"),
    _tatoeba("a line that is blank", {_ENG: "Hello.\n \n"}, f"{_ENG}:2: expected a text, got"),
    _tatoeba("a file that is empty", {_DEU: ""}, f"{_DEU}: the file is empty"),
    _tatoeba("a byte that is no UTF-8", {_DEU: b"Hallo.\n\xff\n"}, f"{_DEU}:2: not UTF-8: byte 0xff"),
    _tatoeba("a folder in place of a file", {_ENG: None}, f"{_ENG}: cannot be read: Is a directory"),
]
