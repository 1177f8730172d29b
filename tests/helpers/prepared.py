"""Prepared corpora of a few pairs, in as many blocks as are wanted."""

import pytest

from metasearch.config.distillation import CorpusSettings
from metasearch.data.parallel import prepare
from metasearch.data.parallel.corpus import read_corpus

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def write_lines(folder, count=50, languages=("de", "fr")):
    """Write files of so many lines each, of which some stand twice and one has no tab."""
    folder.mkdir(parents=True)
    for code in languages:
        lines = [f"{NUMBERS[i % 10]} {i}\t{code} {'long ' * (3 * (i % 10))}{i}" for i in range(count)]
        lines += [*lines[:5], "no tab"]
        (folder / f"en-{code}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def prepared(paths, folder, block=16, **asked):
    """Prepare files in blocks of so many lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "LINES", block)
        patch.setattr(prepare, "_BUCKET", 8)
        return prepare.prepare_corpus(paths, folder, **asked)


def read(folder, **settings):
    """Return the corpus of a folder or of files."""
    return read_corpus([folder], CorpusSettings(**settings))
