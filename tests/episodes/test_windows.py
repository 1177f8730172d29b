"""Batches of a prepared corpus: those of one in memory where that is small, and a good shuffle where it is not."""

from collections import Counter

import numpy as np
import pytest

from helpers.prepared import prepared, write_lines
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.episodes.batches import Batches, Windows
from metasearch.pipelines.distill.prepared import CountedCorpus
from metasearch.pipelines.factory import load_encoder

SIZE, COUNT = 8, 50


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    write_lines(folder / "files", COUNT)
    with (folder / "files" / "en-fr.tsv").open("a") as file:
        file.writelines(f"more {i}\tplus {i}\n" for i in range(COUNT))
    return folder


@pytest.fixture(scope="module")
def corpus(files):
    return prepared([files / "files"], files / "prepared", shard=40, block=16)


@pytest.mark.parametrize("balance", ["none", "file", "language"])
@pytest.mark.parametrize("seed", [0, 7])
def test_batches_are_those_of_the_corpus_in_memory(files, corpus, balance, seed):
    memory = read_corpus([files / "files"], CorpusSettings())
    lengths = memory.lengths(load_encoder("tiny").lengths(memory.texts, "text"))
    expected = Batches(memory, lengths, SIZE, seed, memory.groups(balance), "stage")
    found = Windows(
        CountedCorpus(corpus, load_encoder("tiny")),
        corpus.chosen(CorpusSettings()).groups(balance),
        SIZE,
        seed,
        "stage",
    )
    assert found.steps_per_epoch == expected.steps_per_epoch
    for step in (0, 5, found.steps_per_epoch - 1, found.steps_per_epoch + 2, 0):
        assert found.batch(step) == expected.batch(step)


def windows(corpus, balance="none", **more):
    shares = corpus.chosen(CorpusSettings()).groups(balance)
    return Windows(CountedCorpus(corpus, load_encoder("tiny")), shares, SIZE, 3, "stage", window=32, **more)


def test_an_epoch_of_windows_has_every_pair_once(corpus):
    found = windows(corpus)
    steps = found.steps_per_epoch
    # 150 pairs are 5 windows of 30, and each is 4 batches.
    assert (len(corpus), steps) == (3 * COUNT, 5 * 4)
    for epoch in range(2):
        rows = np.concatenate([found.rows(epoch * steps + step) for step in range(steps)])
        assert sorted(rows.tolist()) == list(range(len(corpus)))
    assert not np.array_equal(found.rows(0), found.rows(steps))


def test_every_share_gives_the_same_number_of_pairs_and_all_of_them_in_the_end(corpus):
    found = windows(corpus, "language")
    steps, each = found.steps_per_epoch, 3 * COUNT // 2
    counts = Counter()
    for epoch in range(4):
        rows = np.concatenate([found.rows(epoch * steps + step) for step in range(steps)])
        # German are the first 50 rows, and come half as often again as they are.
        assert np.bincount(rows >= COUNT).tolist() == [each, each]
        counts.update(rows.tolist())
    assert {counts[row] for row in range(COUNT)} == {4 * each // COUNT}
    assert {counts[row] for row in range(COUNT, 3 * COUNT)} == {4 * each // (2 * COUNT)}


def test_a_batch_depends_on_its_step_alone(corpus):
    found, again = windows(corpus), windows(corpus)
    in_order = [found.rows(step).tolist() for step in range(45)]
    assert [again.rows(step).tolist() for step in reversed(range(45))] == in_order[::-1]


def test_a_corpus_larger_than_a_window_comes_in_chunks(corpus, monkeypatch):
    monkeypatch.setattr("metasearch.episodes.batches._CHUNK", 5)
    found = windows(corpus)
    first = np.sort(np.concatenate([found.rows(step) for step in range(4)]))
    # A window of 30 pairs is of six whole chunks.
    assert sorted(first.tolist()) == sorted(row for start in set(first // 5) for row in range(5 * start, 5 * start + 5))
    assert len(set(first // 5)) == 6
    assert (np.diff(first // 5) > 1).any()
