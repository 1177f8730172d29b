"""Whatever a file holds, its parser returns records or raises an error that a user can act on, and never another."""

import contextlib
import json
import re
import string
from functools import partial

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from helpers.formats import copy, files, read
from metasearch.config import yaml
from metasearch.config.distillation import CorpusSettings, Distillation
from metasearch.config.recipe import Recipe
from metasearch.config.task import Mode, Task
from metasearch.data.entailment import read_entailment
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.scored import read_scored
from metasearch.data.texts import read_tagged, read_texts
from metasearch.errors import MetasearchError
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import read_rows

KEYS = re.findall(
    r"\w+",
    "question answer context id article paragraph sentences questions text1 text2 score group data title paragraphs "
    "sentence_breaks qas answers answer_start text gold_label label sentence1 sentence2 split step dev task learner "
    "encoder measure pool language candidates value fold seed versions recipe description stages outer options",
)
SPECIAL = ["neutral", "train", "mean", "dev", "4.5", "nan", "-1", "\0", "\u200b", "\ufeff", "\u2028", "1e999"]
TEXTS = st.sampled_from(SPECIAL) | st.text(max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, inside, max_size=4),
    max_leaves=12,
)
CELLS = st.lists(st.sampled_from(KEYS) | TEXTS, max_size=5)
ROWS = st.lists(CELLS, max_size=5)


JSON = VALUES.map(json.dumps)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(string.punctuation + "\n\t a01", max_size=40).map(str.encode),
    st.lists(JSON, max_size=4).map("\n".join).map(str.encode),
    ROWS.map(lambda rows: "\n".join(map("\t".join, rows)).encode("utf-8", "surrogatepass")),
    ROWS.map(lambda rows: "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")),
    VALUES.map(lambda value: pyyaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")),
)


def form_of(form, name=None):
    """Return a reading of a file in the place of one of a fixture, which is copied once."""

    def reading(path):
        folder = path.parent / form
        if not folder.is_dir():
            copy(form, path.parent)
        (folder / (name or files(form)[0])).write_bytes(path.read_bytes())
        return read(form, folder)

    return reading


def declaration(model):
    return lambda path: yaml.read(path, model)


# What is read → the name of its file, and the function that reads it.
PARSERS = {
    "yaml": ("x.yaml", yaml.tree),
    "task": ("x.yaml", declaration(Task)),
    "mode": ("x.yaml", declaration(Mode)),
    "recipe": ("x.yaml", declaration(Recipe)),
    "distillation": ("x.yaml", declaration(Distillation)),
    "xquad-r": ("x.json", form_of("xquad-r")),
    "jsonl-paragraphs": ("x.jsonl", form_of("jsonl-paragraphs")),
    "jsonl-pairs": ("x.jsonl", form_of("jsonl-pairs")),
    "csv-labelled": ("x.csv", form_of("csv-labelled")),
    "csv-pairs": ("x.csv", form_of("csv-pairs")),
    "semeval2017": ("x.txt", form_of("semeval2017")),
    "semeval2017 scores": ("x.txt", form_of("semeval2017", files("semeval2017")[1])),
    "stsb-multi-mt": ("x.csv", form_of("stsb-multi-mt")),
    "scored csv": ("x-en.csv", lambda path: read_scored([path])),
    "scored tsv": ("x-en.tsv", lambda path: read_scored([path])),
    "entailment jsonl": ("x.jsonl", lambda path: read_entailment([path])),
    "entailment tsv": ("x.tsv", lambda path: read_entailment([path])),
    "entailment csv": ("x.csv", lambda path: read_entailment([path])),
    "parallel tsv": ("en-de.tsv", lambda path: read_corpus([path], CorpusSettings(normalise=True))),
    "parallel gz": ("en-de.tsv.gz", lambda path: read_corpus([path], CorpusSettings())),
    "texts": ("de.txt", lambda path: list(read_texts([path]))),
    "tagged": ("en-de.tsv", lambda path: read_tagged([path], 9)),
    "results": ("results.jsonl", partial(read_rows, complete=True)),
    "results of a run": ("results.jsonl", lambda path: RunFolder(path.parent).results()),
    "log": ("log.jsonl", lambda path: RunFolder(path.parent).events()),
}


def hold(name, content, folder):
    file, reading = PARSERS[name]
    path = folder / file
    path.write_bytes(content)
    with contextlib.suppress(MetasearchError):
        reading(path)


@pytest.mark.parametrize("name", PARSERS)
@given(content=CONTENTS)
def test_any_content_is_read_or_refused_with_an_error_of_our_own(name, content, tmp_path):
    hold(name, content, tmp_path)


STRAINING = {
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 50_000,
    "long number": b'{"step": ' + b"9" * 5_000 + b"}\n",
    "half a character": b'{"question": "\\ud800"}\n',
    "byte-order mark": b"\xef\xbb\xbf",
    "deep keys": b"? " * 3000,
}


@pytest.mark.parametrize("name", PARSERS)
def test_content_that_strains_a_parser_is_read_or_refused_with_an_error_of_our_own(name, tmp_path):
    for content in STRAINING.values():
        hold(name, content, tmp_path)
