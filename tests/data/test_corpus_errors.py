"""What is wrong with parallel text is said with file, line, value and the nearest right choice."""

import gzip
from pathlib import Path

import pytest

from metasearch.config.corpus import CorpusSettings
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
    assert failing(path / "no" / "x.tsv") == f"{path / 'no' / 'x.tsv'}: no such file or folder."


def test_a_file_of_an_unknown_name_says_what_names_are_expected(folder):
    path = folder(**{"en-de.txt": LINE})
    assert f"{path / 'en-de.txt'}: not named as parallel text; expected names such as en-de.tsv" in failing(
        path / "en-de.txt"
    )


def test_a_folder_without_parallel_text_says_what_there_is(folder):
    path = folder(**{"README": "x", "en_de.tsv": LINE})
    assert f"{path}: no parallel text; there is: README, en_de.tsv; expected names such as" in failing(path)
    assert "no path: no parallel text; expected" in failing()


def test_a_file_without_the_pivot_says_what_it_holds(folder):
    path = folder(**{"en-fr.tsv": LINE, "de-fr.tsv": LINE})
    expected = f"{path / 'de-fr.tsv'}: neither side is 'en', the pivot language; by its name it holds de and fr"
    assert failing(path) == expected


def test_a_language_or_corpus_that_is_not_there_names_the_nearest_one(folder):
    path = folder(**{"TED2020-en-de.tsv": LINE, "Europarl-en-fil.tsv": LINE})
    assert failing(path, languages=("fi",)) == (
        "no parallel text of language 'fi'. Did you mean 'fil'? Known: de, fil."
    )
    assert failing(path, only=("TED2002",)) == (
        "no parallel text of corpus 'TED2002'. Did you mean 'TED2020'? Known: Europarl, TED2020."
    )
    assert failing(path, only=("TED2020",), languages=("fil",)) == "no parallel text of language 'fil'. Known: de."


@pytest.mark.parametrize("name", ["en-de.tsv", "en-de.tsv.gz"])
def test_an_empty_file_is_named(folder, name):
    path = folder(**{name: gzip.compress(b"") if name.endswith("gz") else b""})
    assert failing(path) == f"{path / name}: the file is empty"


def test_a_file_of_nothing_but_damage_says_what_is_wrong_with_it(folder):
    path = folder(**{"en-de.tsv": "one eins\ntwo zwei\n\tdrei\n", "en-fr.tsv": LINE})
    assert failing(path) == f"{path / 'en-de.tsv'}: no line of 3 is a pair: 2 no tab, 1 empty side"


def test_a_missing_side_is_named(folder):
    path = folder(**{"X.de-en.de": "eins\n", "X.de-en.ids": "1\n"})
    assert failing(path) == (
        f"{path / 'X.de-en.de'}: its other side is missing; "
        "expected X.de-en.en or X.de-en.en.gz or X.de-en.en.zst beside it"
    )


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


def test_a_damaged_gzip_file_is_named(folder):
    whole = bytearray(gzip.compress("".join(f"{i} one\t{i} eins\n" for i in range(5000)).encode()))
    whole[len(whole) // 2] ^= 0xFF
    path = folder(**{"en-de.tsv.gz": bytes(whole)})
    assert failing(path).startswith(f"{path / 'en-de.tsv.gz'}: damaged gzip file after line ")


def test_a_file_that_is_only_called_gz_is_named(folder):
    path = folder(**{"en-de.tsv.gz": LINE})
    assert failing(path).startswith(f"{path / 'en-de.tsv.gz'}: damaged gzip file after line 0: Not a gzipped file")


def test_the_same_text_packed_and_not_is_refused(folder):
    path = folder(**{"en-de.tsv": LINE, "en-de.tsv.gz": gzip.compress(LINE.encode())})
    assert failing(path) == (
        f"{path / 'en-de.tsv'} and {path / 'en-de.tsv.gz'}: the same text, packed and not; remove one of them"
    )


def test_a_file_that_cannot_be_read_is_named(folder, monkeypatch):
    path = folder(**{"en-de.tsv": LINE})

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert failing(path) == f"{path / 'en-de.tsv'}: cannot be read: Permission denied"


def test_a_limit_that_no_pair_keeps_is_named(folder):
    path = folder(**{"en-de.tsv": "one two\teins\nthree\tdrei vier\n"})
    assert "2 over 3 characters" in failing(path, max_chars=3)
    assert failing(path, max_tokens=1, lengths=lambda texts: [len(text.split()) for text in texts]) == (
        "max_tokens=1: no pair is that short; the shortest one has 2 tokens"
    )
