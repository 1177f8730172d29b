"""What is held out of a prepared corpus for dev: the pairs that are held out in memory, found once."""

import numpy as np
import pytest

from helpers.prepared import prepared, write_lines
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.prepared.holdout import hold_out


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
