"""What is wrong with parallel text is said with file, line, value and the nearest right choice."""

import gzip

import pytest

from metasearch.config.distillation import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.errors import DataError

LINE = "one\teins\n"


def failing(*paths, lengths=None, **settings):
    with pytest.raises(DataError) as error:
        read_corpus(paths, CorpusSettings(**settings), lengths)
    return str(error.value)


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes files of these names and contents, and returns their folder."""

    def written(**files):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return written


def test_a_missing_path_names_the_nearest_one(folder):
    path = folder(**{"en-de.tsv": LINE, "en-fr.tsv": LINE})
    assert f"{path / 'en-de.tvs'}: no such file or folder. Did you mean 'en-de.tsv'?" in failing(path / "en-de.tvs")
    assert failing(path / "no" / "x.tsv") == f"{path / 'no' / 'x.tsv'}: no such file or folder"


@pytest.mark.parametrize(("german", "english"), [(2, 5), (5, 2), (0, 3)])
def test_sides_of_different_length_are_named_with_both_counts(folder, german, english):
    path = folder(**{"X.de-en.de": "eins\n" * german, "X.de-en.en": "one\n" * english})
    error = failing(path)
    assert f"{path / 'X.de-en.en'} has {english} lines, {path / 'X.de-en.de'} has {german};" in error


@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_a_cut_gzip_file_is_named_with_the_line_it_ends_at(folder, kept):
    whole = gzip.compress("".join(f"{i} one\t{i} eins\n" for i in range(5000)).encode())
    path = folder(**{"en-de.tsv.gz": whole[: int(kept * len(whole))]})
    error = failing(path)
    assert error.startswith(f"{path / 'en-de.tsv.gz'}: damaged gzip file after line ")
    assert int(error.split("after line ")[1].split(":")[0]) > 1000


@pytest.mark.parametrize("name", ["en-de.tsv.zst", "TED-en-de-train.jsonl.xz", "X.de-en.de.bz2"])
def test_text_in_a_compressed_form_that_is_not_read_is_named(folder, name):
    path = folder(**{"en-fr.tsv": LINE, name: b"packed"})
    suffix = (path / name).suffix
    expected = f"{path / name}: {suffix} files cannot be read; decompress it, or compress it with gzip"
    assert failing(path) == failing(path / name) == expected
    assert read_corpus([path], CorpusSettings(languages=("fr",))).counts == {"fr": 1}


def test_a_missing_side_is_an_error_only_where_it_is_needed(folder):
    path = folder(**{"X.de-en.de": "eins\n", "en-fr.tsv": LINE})
    missing = f"{path / 'X.de-en.de'}: its other side is missing; expected X.de-en.en or X.de-en.en.gz beside it"
    assert failing(path) == failing(path, only=("X",)) == missing
    assert read_corpus([path], CorpusSettings(languages=("fr",))).counts == {"fr": 1}
