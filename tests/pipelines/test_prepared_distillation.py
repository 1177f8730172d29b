"""Distillations on a prepared corpus: the bits of those on its files, and what is refused."""

import numpy as np
import pytest

from helpers.parallel import FOLDERS, STAGES, distill, flags, save_assistant, weights, write_corpus
from helpers.prepared import prepared
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.prepared.corpus import open_corpus
from metasearch.episodes.batches import Batches
from metasearch.errors import DataError
from metasearch.pipelines.distill.prepared import TokenCounts
from metasearch.pipelines.distill.sources import prepared_source
from metasearch.pipelines.distill.target_cache import TargetCache, TextGroup
from metasearch.pipelines.factory import load_encoder

ASKED = {"max_chars": 250}
SHORT = [f"--set=stages.{stage}.max_length=64" for stage in STAGES]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files, the same prepared in several shards, and an assistant."""
    folder = tmp_path_factory.mktemp("prepared-distillation")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    prepared([folder / "corpus"], folder / "prepared", shard=50, settings=ASKED)
    return folder


def on(place, corpus, *more, steps=3, **keys):
    """Return flags of a distillation on a corpus."""
    words = [word for word in flags(place, *SHORT, steps=steps) if not word.startswith("--corpus")]
    return [*words, f"--corpus={corpus}", *more]


@pytest.mark.slow
def test_all_stages_come_to_the_bits_of_those_on_the_files(place, tmp_path):
    # In one shard, so that the frozen encoders' vectors are computed in the same batches.
    prepared([place / "corpus"], tmp_path / "one", settings=ASKED)
    for name, corpus in (("files", place / "corpus"), ("prepared", tmp_path / "one")):
        distill(*on(place, corpus, "-o", tmp_path / name))
    for folder in FOLDERS:
        assert weights(tmp_path / "files" / folder) == weights(tmp_path / "prepared" / folder)


@pytest.mark.slow
def test_a_learner_without_targets_has_these_bits_with_any_shards(place, tmp_path):
    given = [
        f"--student={place / 'assistant'}",
        "--recipe=ema-small",
        "--max-steps=4",
        "--set=stages.align.corpus.dev=5",
    ]
    given += [
        "--set=stages.align.budget.batch=8",
        "--set=stages.align.max_length=64",
        "--set=stages.align.corpus.max_tokens=40",
    ]
    given += ["--set=stages.align.corpus.normalise=false"]
    for name in ("corpus", "prepared"):
        distill(*given, f"--corpus={place / name}", "-o", tmp_path / name)
    assert weights(tmp_path / "corpus") == weights(tmp_path / "prepared")


def wanted(corpus):
    return [(shard, np.arange(shard.counts.texts)) for shard in corpus.shards]


def targets_of(folder, encoder, rows, kind="fp32", on_progress=None):
    """Return the vectors of rows of a corpus."""
    cache = TargetCache(folder, encoder, "text", "pooled", kind)
    cache.add(lambda: (TextGroup.of_rows(*each) for each in rows), on_progress)
    return cache


@pytest.mark.parametrize(("kind", "error"), [("fp32", 0), ("fp16", 2**-11), ("int8", 1 / 127)])
def test_targets_are_the_encoders_vectors_up_to_rounding(place, tmp_path, kind, error):
    corpus, encoder = open_corpus(place / "prepared"), load_encoder("tiny")
    targets = targets_of(tmp_path, encoder, wanted(corpus), kind)
    for shard, rows in wanted(corpus):
        texts = shard.texts(rows)
        exact = encoder.encode(texts, "text", "pooled")
        # Of a component, or with eight bits of the greatest one.
        most = np.abs(exact).max(1, keepdims=True) if kind == "int8" else np.abs(exact)
        assert (np.abs(targets.vectors(texts) - exact) <= error * most + 1e-7).all()
    with pytest.raises(KeyError, match="no stored vector of the text"):
        targets_of(tmp_path / "none", encoder, [], kind).vectors(texts)


def test_targets_are_computed_once_and_damaged_ones_again(place, tmp_path, monkeypatch):
    corpus, encoder = open_corpus(place / "prepared"), load_encoder("tiny")
    monkeypatch.setattr("metasearch.pipelines.distill.target_cache.PIECE", 20)
    done = []
    first = targets_of(tmp_path, encoder, wanted(corpus), "fp32", lambda *counts: done.append(counts))
    total = sum(shard.counts.texts for shard in corpus.shards)
    assert done[-1] == (total, total)
    files = sorted(tmp_path.rglob("*.safetensors"))
    assert len(files) == sum(-(-shard.counts.texts // 20) for shard in corpus.shards)
    again = targets_of(tmp_path, encoder, wanted(corpus), "fp32", lambda *counts: pytest.fail("computed"))
    texts = corpus.shards[0].texts(np.arange(30))
    assert np.array_equal(first.vectors(texts), again.vectors(texts))
    content = bytearray(files[0].read_bytes())
    content[-1] ^= 1
    files[0].write_bytes(content)
    targets_of(tmp_path, encoder, wanted(corpus))
    assert sorted(tmp_path.rglob("*.safetensors")) == files


def test_tokens_are_counted_once_and_long_pairs_are_dropped_as_in_memory(place, tmp_path, monkeypatch):
    corpus, encoder, settings = open_corpus(place / "prepared"), load_encoder("tiny"), CorpusSettings(max_tokens=30)
    memory = read_corpus([place / "corpus"], settings, lambda texts: encoder.lengths(texts, "text"))
    train, dev = memory.hold_out(3, 0)
    source = prepared_source(place / "prepared", settings.model_copy(update={"dev": 3}), encoder, 0)
    assert 0 < len(memory) < len(corpus)
    assert source.report == f"{len(corpus)} pairs read; dropped: {len(corpus) - len(memory)} over 30 tokens"
    assert (list(dev), list(train)) == (list(source.dev), list(source.train))
    for balance in ("none", "file", "language"):
        lengths = source.lengths(train, encoder)
        assert lengths.tolist() == source.lengths(source.train, encoder).tolist()
        expected, found = (Batches(one, lengths, 8, 7, one.groups(balance)) for one in (train, source.train))
        assert all(found.batch(step) == expected.batch(step) for step in (0, 5, found.steps_per_epoch + 2))
    rows = np.arange(len(corpus))
    expected = [max(encoder.lengths([str(text) for text in pair.texts], "text")) for pair in corpus.pairs(rows)]
    assert TokenCounts(corpus, encoder).lengths(rows).tolist() == expected
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "lengths", lambda *names: pytest.fail("counted again"))
        assert TokenCounts(corpus, encoder).lengths(rows).tolist() == expected
    with pytest.raises(DataError, match="max_tokens=3: no pair is that short"):
        prepared_source(place / "prepared", CorpusSettings(max_tokens=3), encoder, 0)
