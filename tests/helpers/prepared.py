"""Prepared corpora of a few pairs, in as many shards and blocks as are wanted."""

import pytest

from metasearch.data.prepared import plan
from metasearch.data.prepared.corpus import open_corpus
from metasearch.pipelines.prepare import job
from metasearch.pipelines.prepare.begin import prepare_corpus

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def write_lines(folder, count=50, languages=("de", "fr")):
    """Write files of so many lines each, of which some stand twice and one has no tab."""
    folder.mkdir(parents=True)
    for code in languages:
        lines = [f"{NUMBERS[i % 10]} {i}\t{code} {'long ' * (3 * (i % 10))}{i}" for i in range(count)]
        lines += [*lines[:5], "no tab"]
        (folder / f"en-{code}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def prepared(paths, folder, shard=None, block=None, **asked):
    """Prepare files, in shards and blocks of so many pairs and lines, and return the corpus."""
    with pytest.MonkeyPatch.context() as patch:
        if shard:
            patch.setattr(plan, "PAIRS", shard)
        if block:
            patch.setattr(job, "LINES", block)
        prepare_corpus(paths, folder, **asked)
    return open_corpus(folder)


def contents(folder):
    """Return the bytes of all files of a corpus by their names."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
