"""Damaged files of every reader's format."""

from functools import partial
from pathlib import Path

from helpers import formats
from malformed.row import Row, put, spoil, swap
from metasearch.config import yaml
from metasearch.config.task import Task

VALIDATE = "validate small --include TMP"


def _declared(task: Task, **changed: object) -> str:
    """Return a task as YAML, all of it test, so that it needs no arrangements."""
    tree = task.model_dump(mode="json", exclude={"arrangements"})
    return yaml.dump({**tree, "folds": {"method": "none"}, **changed})


def _given(form: str, damage, folder: Path) -> None:
    formats.copy(form, folder)
    put(folder / "small.yaml", _declared(formats.task_of(form), data=form))
    damage(folder / form)


def _row(form: str, what: str, damage, says: str, lines: int = 1) -> Row:
    return Row(f"{form}, {what}", VALIDATE, 3, says, partial(_given, form, damage), lines=lines)


def _anywhere(form: str) -> list[Row]:
    """Return what can be wrong with a file of any format."""
    name = formats.files(form)[0]
    at = rf"{form}/{name}".replace(".", r"\.")
    empty = f"{at}:1: not JSON: Expecting value" if form == "xquad-r" else f"{at}: (the file is empty|expected rows)"
    # The names of two files of a pair differ in a word.
    either = at.replace("input", "(input|gs)")
    blank = f"{either}(:[12])?: (not JSON: Expecting value|expected|the header|the file is empty)"
    return [
        _row(
            form,
            "a file is missing",
            lambda folder: (folder / name).unlink(),
            f"(missing {name}|none of the files)",
            lines=2,
        ),
        _row(form, "a folder in place of a file", spoil(name, None), f"{at}: cannot be read: Is a directory"),
        _row(form, "a file that is empty", spoil(name, ""), empty),
        _row(form, "a file that is blank", spoil(name, " \n"), blank),
        _row(form, "a file in UTF-16", spoil(name, "\ufeffx\n".encode("utf-16-le")), f"{at}:1: not UTF-8: byte 0xff"),
        _row(form, "a byte that is no UTF-8", spoil(name, b"\x80"), f"{at}:1: not UTF-8: byte 0x80"),
        _row(
            form,
            "a file of NUL characters",
            spoil(name, "\0\0"),
            f"{either}(:1)?: (not JSON|not CSV|expected|the file is empty)",
        ),
    ]


def _lines(form: str, name: str) -> list[Row]:
    """Return what can be wrong with a file of JSON lines."""
    at = rf"{name}:1: "
    cases = [
        ("a list in place of an object", "[]\n", "expected an object in braces"),
        ("half an object", '{"question": "a"\n', "not JSON: .* at column"),
        ("a key twice", '{"answer": "a", "answer": "b"}\n', "the key 'answer' stands twice"),
        ("a number that JSON has not", '{"question": NaN}\n', "question: input should be a valid string"),
        ("brackets without end", "[" * 100_000 + "\n", "not readable JSON: maximum recursion depth"),
        ("a whole number of 5,000 digits", '{"score": ' + "1" * 5000 + "}\n", "JSON|digit|number"),
    ]
    return [_row(form, what, spoil(name, text), at + says) for what, text, says in cases]


def _changed(form: str, name: str, cases) -> list[Row]:
    return [_row(form, what, swap(name, old, new), f"{name}.*{says}") for what, old, new, says in cases]


PARAGRAPHS = [
    ("a field that is misspelt", '"sentences"', '"sentence"', ":1: sentence: unknown field. Did you mean 'sentences'"),
    ("a sentence that is blank", '"Bienen machen Honig."', '" "', r":1: sentences\.0: expected a text, got"),
    ("a sentence that is a number", '"Bienen machen Honig."', "7", r":1: sentences\.0: input should be a valid string"),
    ("no sentence", '["Wachs kommt aus Drüsen."]', "[]", ":2: sentences: list should have at least 1 item"),
    ("an answer beyond the sentences", '"answer": 1', '"answer": 2', "expected a sentence number 0 to 1, got 2"),
    ("an answer below 0", '"answer": 1', '"answer": -1', r":1: questions\.0\.answer: .*greater than or equal to 0"),
    ("an answer that is true", '"answer": 1', '"answer": true', r":1: questions\.0\.answer: .*valid integer"),
    ("an answer that is a text", '"answer": 1', '"answer": "1"', r":1: questions\.0\.answer: .*valid integer"),
    ("the name of a paragraph twice", '"bee-2"', '"bee-1"', r":2: duplicate paragraph 'bee-1', first in .*:1"),
    ("the id of a question twice", '"honey"', '"queen"', r":1: duplicate id 'queen', first in .*:1"),
]
LABELLED = [
    ("no question", '"question": "Wer legt Eier?", ', "", ":1: question: field required"),
    ("an answer of white space", '"Die Königin."', '"\\u00a0"', ":1: answer: expected a text, got"),
    ("an id that is a list", '{"question"', '{"id": [], "question"', ":1: id: input should be a valid string"),
]
SCORES = [
    ("a score above 5", "4.5", "5.5", ":[12]: expected a score from 0 to 5, got '5.5'"),
    ("a score that is a word", "4.5", '"high"', ":[12]: expected a score from 0 to 5, got 'high'"),
]
CSV = [
    ("the header names a column twice", "context", "answer", ":1: the header names the column 'answer' twice"),
    ("an unknown column", "context", "contxt", ":3: contxt: unknown field. Did you mean 'context'|:2: contxt"),
    ("a cell too few", ",queen,bee", ",queen", ":2: expected 5 columns, got 4"),
    ("a quote that is not closed", '"Die Königin, allein."', '"Die Königin', ":[0-9]+: not CSV: "),
    ("a question that is blank", "Wer legt Eier?", "", ":2: question: field required"),
]
XQUAD = [
    ("a key that is missing", '"qas"', '"qsa"', r": data\[0\]\.paragraphs\[0\]\.qas: field required"),
    ("a break beyond the text", "27\n", "2700\n", r"sentence_breaks\[0\]: expected a span within 0 to"),
    ("a break that is a text", "27\n", '"27"\n', r"sentence_breaks\[0\]\[1\]: input should be a valid integer"),
    ("no data", '"data"', '"date"', ": data: field required"),
    ("an empty context", '"context": "', '"context": "", "was": "', r"context: expected a text|sentence_breaks"),
    ("an offset that is off", '"answer_start": ', '"answer_start": 1', r"qas\[0\]\.answers\[0\]"),
]
SEMEVAL = [
    ("a line without a tab", "\t", " ", ":1: expected two sentences with a tab between them"),
    ("a side that is blank", "\t", "\t\t", ":1: expected a sentence, got"),
]
STSB = [
    ("a row of two columns", ",2.5", "", ":1: expected sentence1, sentence2, score; got 2 columns"),
    ("a score below 0", "2.5", "-2.5", ":1: expected a score from 0 to 5, got '-2.5'"),
    ("a score that is no number", "2.5", "nan", ":1: expected a score from 0 to 5, got 'nan'"),
]
TATOEBA = {"tatoeba.deu-eng.deu": "Hallo.\nDanke.\n", "tatoeba.deu-eng.eng": "Hello.\nThanks.\n"}


def _tatoeba(what: str, given: dict[str, str | bytes | None], says: str, lines: int = 1, only: str = "") -> Row:
    task = formats.task("tatoeba", "deu", measures=["accuracy"], monitor="accuracy")
    declared = _declared(task, kind="translation", data="there")
    files = {f"there/{name}": text for name, text in {**TATOEBA, **given}.items() if name != only}
    return Row(f"tatoeba, {what}", VALIDATE, 3, says, {"small.yaml": declared, **files}, lines=lines)


_DEU, _ENG = TATOEBA
ROWS = [
    *(row for form in formats.FORMATS for row in _anywhere(form)),
    *_lines("jsonl-paragraphs", "el.jsonl"),
    *_changed("jsonl-paragraphs", "de.jsonl", PARAGRAPHS),
    *_changed("jsonl-labelled", "de.jsonl", LABELLED),
    *_changed("jsonl-pairs", "de-de.jsonl", SCORES),
    *_changed("csv-labelled", "de.csv", CSV),
    *_changed("csv-pairs", "de-de.csv", SCORES[:1]),
    *_changed("xquad-r", "el.json", XQUAD),
    *_changed("semeval2017", "STS.input.track5.en-en.txt", SEMEVAL),
    *_changed("semeval2017", "STS.gs.track5.en-en.txt", [("a score above 5", "4.8", "48", ":1: expected a score")]),
    *_changed("semeval2017", "STS.gs.track5.en-en.txt", [("a score too few", "2.5\n", "", ": expected 3 scores")]),
    *_changed("stsb-multi-mt", "stsb-en-train.csv", STSB),
    _tatoeba("one side is missing", {}, f"missing {_ENG}", lines=2, only=_ENG),
    _tatoeba("a line too few", {_DEU: "Hallo.\n"}, f"{_DEU}: expected 2 lines, as many as in {_ENG}; got 1"),
    _tatoeba("a line that is blank", {_ENG: "Hello.\n \n"}, f"{_ENG}:2: expected a sentence, got"),
    _tatoeba("a file that is empty", {_DEU: ""}, f"{_DEU}: the file is empty"),
    _tatoeba("a byte that is no UTF-8", {_DEU: b"Hallo.\n\xff\n"}, f"{_DEU}:2: not UTF-8: byte 0xff"),
    _tatoeba("a folder in place of a file", {_ENG: None}, f"{_ENG}: cannot be read: Is a directory"),
]
