"""Damaged files of translations, scored pairs and entailments, as distillations and other commands read them."""

from malformed.row import Row

DISTIL = "distill --recipe align --teacher tiny --student tiny --corpus TMP/corpus -o TMP/out"
SIMILARITY = "distill --recipe similarity --stages 2 --student tiny --scored TMP/{} -o TMP/out"
GOOD = "Hello.\tHallo.\n"


def _corpus(what: str, name: str, content: str | bytes | None, says: str) -> Row:
    return Row(f"corpus, {what}", DISTIL, 3, says, {f"corpus/{name}": content})


def _scored(what: str, name: str, content: str | bytes | None, says: str) -> Row:
    return Row(f"scored pairs, {what}", SIMILARITY.format(name), 3, says, {name: content})


def _entailment(what: str, name: str, content: str | bytes | None, says: str) -> Row:
    line = f"distill --recipe similarity --stages 1 --student tiny --entailment TMP/{name} -o TMP/out"
    return Row(f"entailment, {what}", line, 3, says, {name: content})


CORPORA = [
    _corpus("a file of another name", "pairs.txt", GOOD, "no parallel text; there is: pairs.txt; expected names such"),
    _corpus("an empty folder", "en-de.tsv", None, "no parallel text"),
    _corpus("no pivot", "fr-de.tsv", GOOD, "fr-de.tsv: neither side is 'en', the pivot language"),
    _corpus("a file for tests alone", "en-de-test.tsv", GOOD, "no parallel text"),
    Row("corpus, no such folder", DISTIL, 2, "--corpus .*corpus: no such file or folder"),
    Row("corpus, packed and not", DISTIL, 3, "the same text, compressed and plain; remove one",
        {"corpus/en-de.tsv": GOOD, "corpus/en-de.tsv.gz": b"x"}),
]  # fmt: skip
SCORED = [
    _scored("an empty file", "en.csv", "", "en.csv: the file is empty"),
    _scored("a row of two columns", "en.csv", "a,b\n", "en.csv:1: expected sentence1, sentence2, score; got 2 columns"),
    _scored("a score above 5", "en.csv", "a,b,6\n", "en.csv:1: expected a score from 0 to 5, got '6'"),
    _scored("a score that is not a number", "en.csv", "a,b,nan\n", "en.csv:1: expected a score from 0 to 5, got 'nan'"),
    _scored("a blank sentence", "en.csv", "a, ,1\n", "en.csv:1: expected a text, got"),
    _scored("an open quote", "en.csv", '"a,b,1\n', "en.csv:[0-9]+: not CSV: "),
    _scored("not UTF-8", "en.csv", b"a,b\xff,1\n", "en.csv:1: not UTF-8: byte 0xff"),
    _scored("a NUL character", "en.csv", "a,\0,1\n", "en.csv:1: not UTF-8 text: it has a NUL character"),
    _scored("another format", "en.json", "[]", "en.json: expected rows in .csv"),
    _scored("a folder", "en.csv", None, "en.csv: cannot be read: Is a directory"),
    _scored("no gzip file", "en.csv.gz", b"a,b,1\n", "en.csv.gz: damaged gzip file after line 0"),
    _scored("tabs with a column too many", "en.tsv", "a\tb\t1\t2\n", "en.tsv:1: expected .*; got 4 columns"),
]
ENTAILMENT = [
    _entailment("an empty file", "a.jsonl", "", "a.jsonl: the file is empty"),
    _entailment("another format", "a.txt", "", "a.txt: expected rows in .csv, .tsv, .jsonl"),
    _entailment(
        "a column that is missing", "a.tsv", "sentence1\tsentence\tlabel\n", "a.tsv:1: .*no column 'sentence2'"
    ),
    _entailment(
        "an unknown label", "a.csv", "sentence1,sentence2,label\na,b,neutrl\n", "a.csv:2: unknown label 'neutrl'"
    ),
    _entailment("no line of JSON", "a.jsonl", "{\n", "a.jsonl: .*not JSON.*no usable pair"),
    _entailment("a folder", "a.jsonl", None, "a.jsonl: cannot be read: Is a directory"),
]
TEXTS = [
    Row(
        "texts, not UTF-8",
        "compress tiny --trim-vocab TMP/a.txt -o TMP/out",
        3,
        "a.txt:1: not UTF-8",
        {"a.txt": b"\xff\n"},
    )
]
MINE = {"out/notes.txt": "Buy milk.\n"}
OUTPUTS = [
    Row("scores, a file that exists", "evaluate --encoder tiny -o TMP/out/notes.txt", 5, "exists already", MINE),
    Row(
        "a folder of one's own",
        "train --mode trans --encoder tiny -o TMP/out",
        5,
        "already and is no run; choose",
        MINE,
    ),
    Row("a folder of one's own", "compress tiny --bottleneck 4 -o TMP/out", 5, "already; choose another folder", MINE),
    Row("a folder of one's own", "export tiny --int8 -o TMP/out", 5, "already; choose another folder with -o", MINE),
]
ROWS = [*OUTPUTS, *CORPORA, *SCORED, *ENTAILMENT, *TEXTS]
