"""What is held out of a prepared corpus for dev: the pairs that are held out in memory, found once."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.prepared import prepared, write_lines
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.prepared import holdout
from metasearch.data.prepared.holdout import hold_out
from metasearch.errors import DataError


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two files with the same sources, some of which have several translations, and the same prepared."""
    folder = tmp_path_factory.mktemp("dev")
    write_lines(folder / "files")
    with (folder / "files" / "en-de.tsv").open("a") as file:
        file.writelines(f"one 10\tde again {i}\n" for i in range(9))
    prepared([folder / "files"], folder / "prepared", shard=30, block=16)
    return folder


@pytest.mark.parametrize("chosen", [{}, {"languages": ("fr",)}, {"max_lines": 20}], ids=str)
@pytest.mark.parametrize(("dev", "seed"), [(5, 0), (12, 3)])
def test_the_pairs_are_those_held_out_in_memory(place, chosen, dev, seed):
    corpus = prepared([place / "files"], place / "prepared")
    train, rows = hold_out(corpus.chosen(CorpusSettings(**chosen)), dev, seed)
    expected_train, expected = read_corpus([place / "files"], CorpusSettings(**chosen)).hold_out(dev, seed)
    assert corpus.pairs(rows) == list(expected)
    everything = train.rows
    assert corpus.pairs(everything.rows(np.arange(len(everything)))) == list(expected_train)
    assert train.describe() == expected_train.describe()
    assert train.counts == expected_train.counts


def test_what_was_found_is_kept_and_found_again_where_it_is_damaged(place, tmp_path, monkeypatch):
    corpus = prepared([place / "files"], tmp_path / "prepared")
    chosen = corpus.chosen(CorpusSettings())
    _, first = hold_out(chosen, 7, 1)
    (kept,) = (tmp_path / "prepared" / "held").glob("*/*")
    with monkeypatch.context() as patch:
        patch.setattr("metasearch.data.prepared.holdout.seed_of", lambda *names: pytest.fail("found again"))
        assert hold_out(chosen, 7, 1)[1].tolist() == first.tolist()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert hold_out(chosen, 7, 1)[1].tolist() == first.tolist()
    assert kept.read_bytes() == whole


def test_processes_that_begin_together_find_it_once(place, tmp_path, monkeypatch):
    chosen = prepared([place / "files"], tmp_path / "prepared").chosen(CorpusSettings())
    found, least = [], holdout._least

    def slow(*of):
        found.append(of)
        time.sleep(0.3)
        return least(*of)

    monkeypatch.setattr(holdout, "_least", slow)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: hold_out(chosen, 7, 1)[1].tolist(), range(2))
    assert one == other
    assert len(found) == 1


def test_where_the_folder_cannot_be_written_each_finds_it_for_itself(place, tmp_path, caplog):
    chosen = prepared([place / "files"], tmp_path / "prepared").chosen(CorpusSettings())
    expected = hold_out(chosen, 7, 1)[1].tolist()
    shutil.rmtree(tmp_path / "prepared" / "held")
    (tmp_path / "prepared" / "held").write_text("a file in its place")
    caplog.set_level("INFO")
    assert hold_out(chosen, 7, 1)[1].tolist() == expected
    assert "what is held out is found again at every start" in caplog.text


def test_a_language_that_is_left_none_is_an_error(place):
    corpus = prepared([place / "files"], place / "prepared")
    with pytest.raises(DataError, match="dev=50: de has 59 pairs; none with a source of its own is left to train on"):
        hold_out(corpus.chosen(CorpusSettings()), 50, 0)
