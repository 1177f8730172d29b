"""What is held out of a prepared corpus for dev: the pairs that are held out in memory."""

import pytest

from helpers.prepared import prepared, write_lines
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.prepared.corpus import hold_out


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
    train, dev_pairs = hold_out(corpus.chosen(CorpusSettings(**chosen)), dev, seed)
    expected_train, expected = read_corpus([place / "files"], CorpusSettings(**chosen)).hold_out(dev, seed)
    assert list(dev_pairs) == list(expected)
    assert list(train) == list(expected_train)
    assert train.describe() == expected_train.describe()
    assert train.counts == expected_train.counts
