"""Saved corpora of a few pairs, as `metasearch prepare` of earlier versions wrote them."""

import json

import pytest

from metasearch.config.distillation import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.parallel.saved import COLUMNS
from metasearch.io import digest

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def write_lines(folder, count=50, languages=("de", "fr")):
    """Write files with so many lines each: some lines stand twice, and one has no tab."""
    folder.mkdir(parents=True)
    for code in languages:
        lines = [f"{NUMBERS[i % 10]} {i}\t{code} {'long ' * (3 * (i % 10))}{i}" for i in range(count)]
        lines += [*lines[:5], "no tab"]
        (folder / f"en-{code}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def save_files(files, folder, **settings):
    """Save the pairs of files, and return the folder."""
    corpus = read(files, **settings)
    origins = [(*pair.languages, corpus.parts[part].corpus) for pair, part in zip(corpus, corpus.part, strict=True)]
    return save([(*pair.texts, *origin) for pair, origin in zip(corpus, origins, strict=True)], folder)


def save(rows, folder, block=16):
    """Save rows with `COLUMNS` in blocks of so many, and return the folder."""
    arrow = pytest.importorskip("pyarrow", reason="needs the extra corpora")
    folder.mkdir(parents=True, exist_ok=True)
    name, schema = "data-00000-of-00001.arrow", arrow.schema([(name, arrow.string()) for name in COLUMNS])
    with arrow.OSFile(str(folder / name), "wb") as file, arrow.ipc.new_stream(file, schema) as writer:
        for start in range(0, len(rows), block):
            columns = zip(*rows[start : start + block], strict=True)
            writer.write_batch(arrow.record_batch([list(column) for column in columns], schema=schema))
    state = {
        "_data_files": [{"filename": name}], "_fingerprint": "0" * 16, "_format_columns": None, "_format_kwargs": {},
        "_format_type": None, "_output_all_columns": False, "_split": None,
    }  # fmt: skip
    contents = {
        "state": state,
        "dataset_info": {"features": {column: {"dtype": "string", "_type": "Value"} for column in COLUMNS}},
        "report": {"pairs kept": len(rows), "sha256": {name: digest(folder / name)}},
    }
    for stem, content in contents.items():
        (folder / f"{stem}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def read(folder, **settings):
    """Return the corpus of a folder or of files."""
    return read_corpus([folder], CorpusSettings(**settings))
