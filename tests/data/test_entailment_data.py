"""Files of entailment pairs as SNLI, MultiNLI and AllNLI ship them: what is read, left out and refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.files import write
from metasearch.data.entailment import LABELS, EntailmentPair, read_entailment
from metasearch.data.formats.blank import blank

SNLI = [
    {"gold_label": "neutral", "sentence1": "A man rides.", "sentence2": "He trains.", "captionID": "1"},
    {"gold_label": "-", "sentence1": "A man rides.", "sentence2": "He is sad.", "captionID": "2"},
    {"gold_label": "entailment", "sentence1": "A man rides.", "sentence2": "Somebody rides.", "captionID": "3"},
]
ALL_NLI = (
    "split\tdataset\tfilename\tsentence1\tsentence2\tlabel\n"
    'train\tMultiNLI\tx.jsonl\tHe said "so.\tHe spoke.\tentailment\n'
    "dev\tSNLI\ty.jsonl\tA dog.\tA cat.\tcontradiction\n"
)
UNSEEN = '{"gold_label": "neutral", "sentence1": "\u200b", "sentence2": "He trains."}'
sentences = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(lambda text: not blank(text))
)


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def file(tmp_path):
    return lambda name, content: write(tmp_path / name, content)


@pytest.mark.parametrize("name", ["snli_1.0_train.jsonl", "snli_1.0_train.jsonl.gz"])
def test_snli_lines_are_pairs_and_those_without_consensus_are_left_out_and_counted(file, name):
    entailments = read_entailment([file(name, lines(SNLI))])
    assert entailments.pairs == (
        EntailmentPair("A man rides.", "He trains.", "neutral"),
        EntailmentPair("A man rides.", "Somebody rides.", "entailment"),
    )
    assert (entailments.report.read, entailments.report.kept, entailments.report.dropped) == (3, 2, {"no consensus": 1})
    assert entailments.report.examples == []


def test_of_allnli_the_train_rows_alone_are_read_and_quotes_are_text(file):
    entailments = read_entailment([file("AllNLI.tsv.gz", ALL_NLI)])
    assert entailments.pairs == (EntailmentPair('He said "so.', "He spoke.", "entailment", ("en", "en")),)
    assert entailments.report.dropped == {"of another split": 1}
    assert entailments.report.examples == []


@given(
    st.lists(st.tuples(sentences, sentences, st.sampled_from(LABELS)), min_size=1, max_size=6),
    st.lists(st.sampled_from(['{"', "[]", "7", '{"gold_label": "neutral"}', UNSEEN]), max_size=6),
    st.randoms(),
)
def test_every_pair_that_is_written_is_read_back_and_every_damaged_line_is_counted(tmp_path, rows, damage, random):
    good = [json.dumps({"gold_label": label, "sentence1": a, "sentence2": b}) for a, b, label in rows]
    mixed = [(line, True) for line in good] + [(line, False) for line in damage]
    order = {line: i for i, (line, kept) in enumerate(mixed) if kept}
    random.shuffle(mixed)
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(line + "\n" for line, _ in mixed), encoding="utf-8")

    entailments = read_entailment([path])

    assert entailments.pairs == tuple(EntailmentPair(*rows[order[line]]) for line, kept in mixed if kept)
    assert (entailments.report.read, entailments.report.kept) == (len(rows) + len(damage), len(rows))


def test_the_fingerprint_changes_with_text_label_and_language(file):
    whole = read_entailment([file("x.jsonl", lines(SNLI))])
    label = read_entailment([file("y.jsonl", lines([SNLI[0], {**SNLI[2], "gold_label": "neutral"}]))])
    text = read_entailment([file("z.jsonl", lines([SNLI[0], {**SNLI[2], "sentence1": "A man."}]))])
    german = replace(whole, pairs=tuple(replace(pair, languages=("de", "de")) for pair in whole.pairs))
    assert whole.fingerprint == read_entailment([file("w.jsonl", lines(SNLI))]).fingerprint
    assert len({whole.fingerprint, label.fingerprint, text.fingerprint, german.fingerprint}) == 4


def test_no_premise_straddles_train_and_dev(file):
    """Each premise has 3 pairs, so 7 pairs at least take 3 premises, 9 pairs."""
    rows = [
        {"gold_label": label, "sentence1": f"premise {i}", "sentence2": f"{label} {i}"}
        for i in range(10)
        for label in LABELS
    ]
    whole = read_entailment([file("x.jsonl", lines(rows))])
    train, dev = whole.hold_out(7, seed=1)
    assert len(dev.pairs) == 3 * 3
    assert not {pair.premise for pair in train.pairs} & {pair.premise for pair in dev.pairs}
    assert sorted(train.pairs + dev.pairs, key=whole.pairs.index) == list(whole.pairs)
    assert whole.hold_out(7, seed=1) == (train, dev)
    assert whole.hold_out(7, seed=2) != (train, dev)
    assert whole.hold_out(0)[0] == whole
