"""Saved corpora have the same pairs as their files, whether `datasets` or an earlier version wrote the folder."""

import pytest

from helpers.saved import read, save, save_files, write_lines
from metasearch.config.distillation import CorpusSettings
from metasearch.data.formats.rows import data_files
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.parallel.saved import COLUMNS
from metasearch.errors import ConfigError, DataError, RunFolderError

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("saved") / "files")


STAGE = {"max_lines": 7, "normalise": True}


@pytest.mark.parametrize("asked", [{}, {"max_chars": 20}, {"languages": ("fr",)}, STAGE], ids=str)
def test_the_pairs_of_a_saved_corpus_are_those_of_its_files(files, tmp_path, asked):
    assert list(read(save_files(files, tmp_path / "saved"), **asked)) == list(read(files, **asked))
    # The settings may have been applied before, too.
    assert list(read(save_files(files, tmp_path / "chosen", **asked))) == list(read(files, **asked))


def test_a_corpus_with_retired_tags_is_read_as_one_with_current_ones(tmp_path):
    corpus = read(save([("one", "אחת", "eng", "iw", "TED")], tmp_path / "old"), languages=("heb",), pivot="eng")
    assert (corpus.counts, corpus[0].languages) == ({"he": 1}, ("en", "he"))


def test_a_folder_that_datasets_saved_is_read(files, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    table = datasets.load_from_disk(str(save_files(files, tmp_path / "saved")))
    assert tuple(table.column_names) == COLUMNS
    table.select(range(60, 40, -1)).save_to_disk(tmp_path / "own", num_shards=3)
    assert list(read(tmp_path / "own")) == list(read(tmp_path / "saved"))[60:40:-1]


def test_other_files_beside_it_and_a_changed_data_file_are_refused(files, tmp_path):
    saved = save_files(files, tmp_path / "saved")
    with pytest.raises(ConfigError, match=r"saved: a saved corpus cannot be combined with other files; save all texts"):
        read_corpus([saved, files], CorpusSettings())
    (path,) = data_files(saved)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        RunFolderError, match=r"data-00000-of-00001\.arrow: checksum mismatch: .*or delete .*report\.json if you"
    ):
        read(saved)
    (saved / "report.json").unlink()
    path.write_bytes(content[:1000])
    with pytest.raises(DataError, match=r"data-00000-of-00001\.arrow: damaged or unreadable"):
        read(saved)
    (saved / "state.json").write_text('{"_data_files": [5]}')
    with pytest.raises(DataError, match=r"state\.json: expected a 'filename' for each of _data_files"):
        read(saved)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"languages": ("it",)}, "saved: no parallel text of language 'it'"),
        ({"only": ("file",)}, r"no parallel text of corpus 'file'\. Did you mean 'files'"),
        ({"pivot": "de"}, "no parallel text of pivot 'de'"),
        ({"max_chars": 1}, r"saved: no line of \d+ is a pair: \d+ over 1 characters"),
    ],
)
def test_what_a_saved_corpus_lacks_is_named(files, tmp_path, asked, message):
    with pytest.raises(DataError, match=message):
        read(save_files(files, tmp_path / "saved"), **asked)
