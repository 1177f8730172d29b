"""Distillations on a saved corpus have the bits of those on its files."""

import numpy as np
import pytest

from helpers.parallel import FOLDERS, STAGES, distill, flags, save_assistant, weights, write_corpus
from helpers.saved import read, save_files
from metasearch.config.distillation import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.parallel.saved import SavedTable
from metasearch.encoders.load import load_encoder
from metasearch.episodes.batches import Batches
from metasearch.errors import DataError
from metasearch.pipelines.distill.stage import pair_lengths, token_counter

pytest.importorskip("pyarrow")
SHORT = [f"--set=stages.{stage}.max_length=64" for stage in STAGES]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files, the same saved in several batches, and an assistant."""
    folder = tmp_path_factory.mktemp("saved-distillation")
    write_corpus(folder / "corpus")
    with (folder / "corpus" / "en-de.tsv").open("a") as file:
        file.writelines(f"one 10\tde again {i}\n" for i in range(9))
    save_assistant(folder / "assistant")
    save_files(folder / "corpus", folder / "saved", max_chars=250)
    return folder


@pytest.mark.slow
def test_all_stages_have_the_bits_of_those_on_the_files(place, tmp_path):
    words = [word for word in flags(place, *SHORT, steps=2) if not word.startswith("--corpus")]
    for name in ("corpus", "saved"):
        distill(*words, f"--corpus={place / name}", "-o", tmp_path / name)
    for folder in FOLDERS:
        assert weights(tmp_path / "corpus" / folder) == weights(tmp_path / "saved" / folder)


@pytest.mark.parametrize("chosen", [{}, {"languages": ("tr",)}, {"max_lines": 20}], ids=str)
@pytest.mark.parametrize(("dev", "seed"), [(5, 0), (8, 3)])
def test_the_held_out_pairs_are_those_of_the_files(place, chosen, dev, seed):
    train, dev_pairs = read(place / "saved", **chosen).hold_out(dev, seed)
    expected_train, expected = read(place / "corpus", max_chars=250, **chosen).hold_out(dev, seed)
    assert list(dev_pairs) == list(expected)
    assert list(train) == list(expected_train)
    assert train.describe() == expected_train.describe()
    assert train.counts == expected_train.counts


def test_tokens_are_counted_once_and_batches_are_those_of_the_files(place, monkeypatch):
    encoder, settings = load_encoder("tiny"), CorpusSettings(max_tokens=30)
    counter = token_counter(encoder)
    memory, saved = (read_corpus([place / name], settings, counter) for name in ("corpus", "saved"))
    assert 0 < len(memory) < len(read(place / "corpus"))
    assert saved.report.dropped["over 30 tokens"] == memory.report.dropped["over 30 tokens"] > 0
    for balance in ("none", "file", "language"):
        lengths = pair_lengths(memory, encoder)
        assert lengths.tolist() == pair_lengths(saved, encoder).tolist()
        expected, found = (Batches(one, lengths, 8, 7, one.groups(balance)) for one in (memory, saved))
        assert all(found.batch(step) == expected.batch(step) for step in (0, 5, found.steps_per_epoch + 2))
    table = SavedTable(place / "saved")
    pairs = table.texts(np.arange(len(table)))
    assert table.lengths(counter).tolist() == [max(encoder.lengths(list(texts), "text")) for texts in pairs]
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "lengths", lambda *names: pytest.fail("counted again"))
        table.lengths(counter)
    with pytest.raises(DataError, match="max_tokens=3: no pair is that short"):
        read_corpus([place / "saved"], CorpusSettings(max_tokens=3), counter)


def test_the_fingerprint_follows_the_texts_and_the_choice(place, tmp_path):
    write_corpus(tmp_path / "other", count=20)
    save_files(tmp_path / "other", tmp_path / "saved")
    whole = read(place / "saved")
    others = [read(tmp_path / "saved"), read(place / "saved", max_lines=20), whole[:10]]
    assert len({whole.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert read(place / "saved").fingerprint == whole.fingerprint


def test_a_hub_name_reaches_the_reader(monkeypatch, tmp_path):
    def refuse(*name, **options):
        raise OSError(f"offline: {name[0]}, {options['allow_patterns'][:2]}")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    flags = ("--recipe=align", "--teacher=tiny", "--student=tiny", "--corpus=hub:org/name/en-de")
    said = distill(*flags, "-o", tmp_path / "run", code=9).stderr
    assert "hub:org/name/en-de: offline: org/name, ['en-de', 'en-de/*.parquet']" in said
