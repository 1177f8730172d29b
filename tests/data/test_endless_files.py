"""A named pipe, a device or a folder in the place of a file is refused; reading it would wait, or read, forever."""

import os
import socket

import pytest

from metasearch.config import yaml
from metasearch.config.distillation import CorpusSettings
from metasearch.data.entailment import read_entailment
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.scored import read_scored
from metasearch.data.texts import read_tagged, read_texts
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.io import read_bytes
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import load
from metasearch.runs.rows import read_rows

PIPE, DEVICE = "it is a named pipe, not a file", "it is a device, not a file"
MAKE = {PIPE: os.mkfifo, DEVICE: lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.parametrize("says", MAKE)
@pytest.mark.parametrize(
    ("name", "reading", "kind"),
    [
        ("en-de.tsv", lambda path: read_corpus([path], CorpusSettings()), DataError),
        ("en-de.tsv.gz", lambda path: read_corpus([path.parent], CorpusSettings()), DataError),
        ("stsb-en.csv", lambda path: read_scored([path]), DataError),
        ("nli.jsonl", lambda path: read_entailment([path]), DataError),
        ("de.txt", lambda path: list(read_texts([path])), DataError),
        ("de.txt", lambda path: list(read_texts([path.parent])), DataError),
        ("de.txt", lambda path: read_tagged([path], 9), DataError),
        ("de.txt", lambda path: read_tagged([path.parent], 9), DataError),
        ("task.yaml", yaml.tree, ConfigError),
        ("results.jsonl", lambda path: read_rows(path), DataError),
        ("results.jsonl", lambda path: RunFolder(path.parent).results(), DataError),
        ("results.jsonl", lambda path: RunFolder(path.parent).add_results([{}]), RunFolderError),
        ("log.jsonl", lambda path: RunFolder(path.parent).events(), RunFolderError),
        ("questions.npz", load, RunFolderError),
    ],
)
def test_what_reads_files_refuses_it(name, reading, kind, says, tmp_path):
    path = tmp_path / name
    MAKE[says](path)
    with pytest.raises(kind) as caught:
        reading(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_a_socket_and_a_name_with_a_nul_are_none_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket may have a hundred bytes only
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("x.jsonl")
        with pytest.raises(OSError, match="it is a socket, not a file"):
            read_bytes(tmp_path / "x.jsonl")
    with pytest.raises(OSError, match="embedded null"):
        read_bytes(tmp_path / "a\0b")
