"""What can be done with the pairs of a parallel corpus: shares, lengths, subsets and a dev part."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.data.formats.text_files import Report
from metasearch.data.parallel.corpus import Corpus, TextTable
from metasearch.data.parallel.names import Part
from metasearch.data.parallel.saved import TokenCounter


def corpus_of(pairs):
    """Make a corpus of (source, target, corpus, language), in that order."""
    row, files = {}, list(dict.fromkeys((name, language) for _, _, name, language in pairs))
    part = [files.index((name, language)) for _, _, name, language in pairs]
    columns = [[row.setdefault(pair[side], len(row)) for pair in pairs] for side in (0, 1)]
    parts = tuple(Part((Path(f"{n}-en-{c}.tsv"),), n, c, "en") for n, c in files)
    table = TextTable(list(row), *(np.array(column, np.int32) for column in columns))
    return Corpus(table, np.arange(len(pairs)), np.array(part, np.int16), parts, Report(read=len(pairs)))


def pairs_of(corpus):
    return [(pair.source, pair.target, pair.languages[1]) for pair in corpus]


SMALL = corpus_of(
    [
        ("one", "eins", "TED", "de"),
        ("two", "zwei", "TED", "de"),
        ("one", "un", "TED", "fr"),
        ("three", "drei", "EP", "de"),
    ]
)
# Each source has one or two translations into each of some languages.
CORPORA = st.lists(st.lists(st.sampled_from(["de", "fr", "es"]), min_size=1, max_size=4), min_size=12, max_size=40).map(
    lambda sources: corpus_of(
        [
            (f"source {i}", f"{code} {i} {j}", "X", code)
            for i, codes in enumerate([["de", "fr", "es"]] * 8 + sources)
            for j, code in enumerate(codes)
        ]
    )
)


def test_shares_of_an_epoch_are_files_or_languages():
    assert SMALL.groups("none") is None
    assert SMALL.groups("file").tolist() == [0, 0, 1, 2]
    assert SMALL.groups("language").tolist() == [0, 0, 1, 0]


def test_pairs_with_a_longer_side_are_dropped_and_counted():
    letters = TokenCounter(lambda texts: [len(text) for text in texts], "letters")
    short = SMALL.drop_long(letters, 4)
    assert pairs_of(short) == [("one", "eins", "de"), ("two", "zwei", "de"), ("one", "un", "fr")]
    assert short.report.dropped == {"over 4 tokens": 1}
    assert SMALL.drop_long(letters, 5) is SMALL


def test_the_fingerprint_follows_texts_order_languages_and_corpora():
    pairs = [("one", "eins", "TED", "de"), ("two", "zwei", "TED", "de")]
    first, second = pairs
    others = [
        [second, first],
        [first],
        [first, ("two", "zwo", "TED", "de")],
        [first, ("two", "zwei", "TED", "nl")],
        [first, ("two", "zwei", "EP", "de")],
        [first, ("tw", "ozwei", "TED", "de")],
    ]
    prints = {corpus_of(pairs).fingerprint, *(corpus_of(other).fingerprint for other in others)}
    assert len(prints) == 1 + len(others)
    assert all(len(digest) == 16 for digest in prints)
    longer = corpus_of([*pairs, ("three", "trois", "TED", "fr")])
    assert longer[:2].fingerprint == corpus_of(pairs).fingerprint


@given(CORPORA, st.integers(0, 5), st.integers(0, 3))
def test_dev_has_its_number_of_each_language_and_shares_no_source_with_train(corpus, count, seed):
    train, dev = corpus.hold_out(count, seed)
    assert Counter(pair.languages[1] for pair in dev) == Counter({code: count for code in corpus.languages if count})
    assert not {pair.source for pair in train} & {pair.source for pair in dev}
    held = {pair.source for pair in dev}
    assert list(train) == [pair for pair in corpus if pair.source not in held]
    assert set(dev) <= set(corpus)


def test_dev_takes_the_same_sources_in_all_languages():
    """A source in dev costs train all of its translations, so few sources should serve all languages."""
    corpus = corpus_of([(f"s{i}", f"{code} {i}", code, code) for code in ("de", "fr", "es") for i in range(40)])
    train, dev = corpus.hold_out(10, seed=3)
    assert len({pair.source for pair in dev}) == 10
    assert len(train) == 3 * (40 - 10)


def test_dev_depends_on_the_seed_alone():
    corpus = corpus_of([(f"s{i}", f"t{i}", "X", "de") for i in range(100)])
    draws = [pairs_of(corpus.hold_out(10, seed)[1]) for seed in (0, 0, 1)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def sources_of(corpus):
    return {pair.source for pair in corpus}


@pytest.mark.parametrize("order", [1, -1])
def test_other_files_of_the_same_sources_hold_out_the_same_ones(order):
    """So that no stage trains on what another one is scored by, whichever languages it reads and in whatever order."""
    german, french = (corpus_of([(f"s{i}", f"{code} {i}", code, code) for i in range(60)]) for code in ("de", "fr"))
    numbers = list(range(60))[::order]
    both = corpus_of([(f"s{i}", f"{code} {i}", code, code) for i in numbers for code in ("fr", "de")])
    held = [sources_of(corpus.hold_out(10, seed=3)[1]) for corpus in (german, french, both)]
    assert held[0] == held[1] == held[2]
    assert len(held[0]) == 10


@pytest.mark.parametrize("lines", [30, 59])
def test_fewer_lines_hold_out_what_more_lines_do_as_far_as_they_have_it(lines):
    rows = [(f"s{i}", f"{code} {i}", code, code) for i in range(60) for code in ("de", "fr")]
    whole, part = (corpus_of(selected).hold_out(10, seed=3) for selected in (rows, rows[: 2 * lines]))
    kept = sources_of(whole[1]) & {f"s{i}" for i in range(lines)}
    assert len(kept) > 0
    assert kept <= sources_of(part[1])
    assert not kept & sources_of(part[0])
