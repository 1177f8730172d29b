"""Damaged files of translations, scored pairs and entailments, as distillations and other commands read them."""

from malformed.row import Row

DISTIL = "distill --recipe align --teacher tiny --student tiny --corpus TMP/corpus -o TMP/out"
SCORE = "distill --recipe similarity --stages 2 --student tiny --scored TMP/{} -o TMP/out"
ENTAIL = "distill --recipe similarity --stages 1 --student tiny --entailment TMP/{} -o TMP/out"
GOOD = "Hello.\tHallo.\n"


CORPORA = [
    ("a file of another name", "pairs.txt", GOOD, "no parallel text; there is: pairs.txt; expected names such"),
    ("an empty folder", "en-de.tsv", None, "no parallel text"),
    ("no pivot", "fr-de.tsv", GOOD, "fr-de.tsv: neither side is 'en', the pivot language"),
    ("a file for tests alone", "en-de-test.tsv", GOOD, "no parallel text"),
]
SCORED = [
    ("an empty file", "en.csv", "", "en.csv: the file is empty"),
    ("a row of two columns", "en.csv", "a,b\n", "en.csv:1: expected sentence1, sentence2, score; got 2 columns"),
    ("a score above 5", "en.csv", "a,b,6\n", "en.csv:1: expected a score from 0 to 5, got '6'"),
    ("a score that is not a number", "en.csv", "a,b,nan\n", "en.csv:1: expected a score from 0 to 5, got 'nan'"),
    ("a blank sentence", "en.csv", "a, ,1\n", "en.csv:1: expected a text, got"),
    ("an open quote", "en.csv", '"a,b,1\n', "en.csv:[0-9]+: not CSV: "),
    ("not UTF-8", "en.csv", b"a,b\xff,1\n", "en.csv:1: not UTF-8: byte 0xff"),
    ("a NUL character", "en.csv", "a,\0,1\n", "en.csv:1: not UTF-8 text: it has a NUL character"),
    ("another format", "en.json", "[]", "en.json: expected rows in .csv"),
    ("a folder", "en.csv", None, "en.csv: cannot be read: Is a directory"),
    ("no gzip file", "en.csv.gz", b"a,b,1\n", "en.csv.gz: damaged gzip file after line 0"),
    ("tabs with a column too many", "en.tsv", "a\tb\t1\t2\n", "en.tsv:1: expected .*; got 4 columns"),
]
ENTAILMENT = [
    ("an empty file", "a.jsonl", "", "a.jsonl: the file is empty"),
    ("another format", "a.txt", "", "a.txt: expected rows in .csv, .tsv, .jsonl"),
    ("a column that is missing", "a.tsv", "sentence1\tsentence\tlabel\n", "a.tsv:1: .*no column 'sentence2'"),
    ("an unknown label", "a.csv", "sentence1,sentence2,label\na,b,neutrl\n", "a.csv:2: unknown label 'neutrl'"),
    ("no line of JSON", "a.jsonl", "{\n", "a.jsonl: .*not JSON.*no usable pair"),
    ("a folder", "a.jsonl", None, "a.jsonl: cannot be read: Is a directory"),
]
"""What is wrong, the name and the content of the file, and what is said of it."""
OUTPUTS = [
    ("evaluate --encoder tiny -o TMP/out/notes.txt", "exists already"),
    ("train --mode trans --encoder tiny -o TMP/out", "already and is no run; choose"),
    ("compress tiny --bottleneck 4 -o TMP/out", "already; choose another folder"),
    ("export tiny --int8 -o TMP/out", "already; choose another folder with -o"),
]
PACKED_TOO = {"corpus/en-de.tsv": GOOD, "corpus/en-de.tsv.gz": b"x"}
TRIM = "compress tiny --trim-vocab TMP/a.txt -o TMP/out"
ROWS = [
    *(Row("an output of one's own", line, 5, says, {"out/notes.txt": "Buy milk.\n"}) for line, says in OUTPUTS),
    *(Row(f"corpus, {what}", DISTIL, 3, says, {f"corpus/{name}": text}) for what, name, text, says in CORPORA),
    Row("corpus, no such folder", DISTIL, 2, "--corpus .*corpus: no such file or folder"),
    Row("corpus, packed and not", DISTIL, 3, "the same text, compressed and plain; remove one", PACKED_TOO),
    *(Row(f"scored pairs, {what}", SCORE.format(name), 3, says, {name: text}) for what, name, text, says in SCORED),
    *(Row(f"entailment, {what}", ENTAIL.format(name), 3, says, {name: text}) for what, name, text, says in ENTAILMENT),
    Row("texts, not UTF-8", TRIM, 3, "a.txt:1: not UTF-8", {"a.txt": b"\xff\n"}),
]
