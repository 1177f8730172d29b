"""Files of scored pairs: what is read, written and split, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.files import write
from metasearch.data.records import ScoredPair
from metasearch.data.scored import read_scored, scored_rows, split_dev
from metasearch.errors import DataError

ROWS = 'A plane takes off.,"A plane, an old one, starts.",4.5\nA man sings.,"He says ""no"".",0\n'


@pytest.fixture
def file(tmp_path):
    return lambda name, content: write(tmp_path / name, content)


def test_a_row_is_two_sentences_and_a_score_from_0_to_5(file):
    first, second = read_scored([file("stsb-en-train.csv", ROWS)])
    assert (first.text1, first.text2) == ("A plane takes off.", "A plane, an old one, starts.")
    assert first.score == 4.5 / 5
    assert (second.text2, second.score) == ('He says "no".', 0 / 5)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sts-en.csv.gz", ROWS),
        ("sts-en.csv", "\ufeff" + ROWS.replace("\n", "\r\n")),
        ("sts-en.csv", ROWS + "\n\n"),
        ("sts-en.tsv", 'A plane takes off.\tA plane, an old one, starts.\t4.5\r\nA man sings.\tHe says "no".\t0\n'),
    ],
)
def test_packed_files_tabs_byte_order_marks_and_empty_lines_change_nothing(file, name, content):
    assert list(scored_rows(file(name, content))) == list(scored_rows(file("plain-en.csv", ROWS)))


@pytest.mark.parametrize(
    ("name", "languages", "pair"),
    [
        ("stsb-en-train.csv", ("en", "en"), "en-en"),
        ("ar-en.csv", ("ar", "en"), "ar-en"),
        ("sts_de_en.dev.tsv", ("de", "en"), "de-en"),
        ("stsb-zh_CN-train.csv", ("zh-CN", "zh-CN"), "zh-CN-zh-CN"),
        ("sts-pt-BR-en.csv", ("pt-BR", "en"), "pt-BR-en"),
        ("sr-Latn-en.csv", ("sr-Latn", "en"), "sr-Latn-en"),
    ],
)
def test_the_name_tells_the_languages(file, name, languages, pair):
    first = read_scored([file(name, "a\tb\t1" if name.endswith(".tsv") else "a,b,1")])[0]
    assert (first.languages, first.pair) == (languages, pair)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("en-de-fr.csv", "several words that may be languages, en and de and fr; rename it"),
        ("en-sts-de.csv", "several words that may be languages, en and de; rename it"),
        ("scored.csv", "no language in its name; rename it"),
        ("stsb-zh_cn-train.csv", "'zh_cn' in its name may be zh-CN; write zh-CN"),
        ("sts-en-sr-latn.csv", "'sr-latn' in its name may be sr-Latn; write sr-Latn"),
    ],
)
def test_a_name_without_clear_languages_is_refused(file, name, says):
    with pytest.raises(DataError, match=rf"{name}: .*{says}"):
        read_scored([file(name, ROWS)])


def test_rows_of_the_same_number_share_a_group_across_languages_and_in_no_other_series(file):
    files = [file(f"{name}.csv", ROWS) for name in ("stsb-en-train", "stsb-de-train", "stsb-en-augmented")]
    groups = [pair.group for pair in read_scored(files)]
    assert groups[:2] == groups[2:4]
    assert len(set(groups)) == 2 + 2


def parallel(count):
    """Make scored pairs of which each row stands in two languages."""
    return [
        ScoredPair(f"{code}-{code}", (code, code), f"{code} {i}", f"{code} {i}", 0.5, f"row:{i}")
        for code in ("en", "de")
        for i in range(count)
    ]


@given(st.integers(2, 30), st.data(), st.integers(0, 3))
def test_no_row_straddles_train_and_dev_and_none_is_lost(count, data, seed):
    pairs = parallel(count)
    held = data.draw(st.integers(0, count - 1))
    train, dev = split_dev(pairs, held, seed)
    assert not {pair.group for pair in train} & {pair.group for pair in dev}
    assert sorted(train + dev, key=pairs.index) == pairs
    assert len(dev) == 2 * held


def test_dev_takes_a_number_of_rows_in_the_order_of_the_file_and_by_the_seed_alone():
    pairs = parallel(20)
    train, dev = split_dev(pairs, 5, seed=1)
    assert list(dev) == sorted(dev, key=pairs.index)
    assert split_dev(pairs, 5, seed=1) == (train, dev)
    assert split_dev(pairs, 5, seed=2) != (train, dev)
    assert split_dev(pairs, 0) == (tuple(pairs), ())
