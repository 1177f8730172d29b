"""Which training texts stand in a test set, as `benchmarks/mini/overlap.py` finds them."""

import importlib

import pytest
from click.testing import CliRunner

from helpers.mini import MINI, line, small_data, written
from metasearch.errors import DataError

ANSWER = "the tower was built by a king who liked bells"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of the folder."""
    monkeypatch.syspath_prepend(str(MINI))
    return importlib.import_module


def index(script, *texts, passages=()):
    placed = tuple((text, f"test:{i}") for i, text in enumerate((*texts, *passages), 1))
    return script("overlap").Index(script("_test_sets").TestSet("T", placed, placed[len(texts) :]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Here comes the bus!", "here  comes, the BUS."),
        ("«Ｃafé» – 5 €", "cafe\u0301 5"),
        ("Straße", "STRASSE"),
        ("हिन्दी में।", "हिन्दी में"),
    ],
)
def test_texts_are_the_same_up_to_case_width_punctuation_and_spaces(script, one, other):
    assert script("overlap").key(one) == script("overlap").key(other)


@pytest.mark.parametrize(("one", "other"), [("की", "का"), ("resume", "résumé"), ("no. 5", "no. 6")])
def test_vowel_signs_accents_and_digits_make_another_text(script, one, other):
    assert script("overlap").key(one) != script("overlap").key(other)


def test_either_side_of_a_pair_overlaps_and_others_do_not(script):
    overlap = script("overlap")
    lines = [line(script, "One.", "Eins."), line(script, "Two.", "Zwei."), line(script, "Three.", "Drei.")]
    found = overlap.overlaps(lines, [index(script, "one", "x", "ZWEI!")])
    assert [(one.line.source, one.place) for one in found["T"]] == [("One.", "test:1"), ("Two.", "test:3")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (ANSWER, "test:2 (part)"),
        (f"They say {ANSWER}.", "test:1 (contained)"),
        ("liked bells", None),
        ("the tower was built by a king who liked trumpets", None),
    ],
)
def test_a_part_of_a_passage_overlaps_from_25_characters_and_so_does_what_holds_a_sentence_of_it(script, text, place):
    overlap = script("overlap")
    found = index(script, ANSWER, passages=[f"In those days {ANSWER} and drums."]).find(overlap.key(text))
    assert found == (place if text != ANSWER else "test:1")
    if text == ANSWER:
        assert index(script, passages=[f"In those days {ANSWER}"]).find(overlap.key(text)) == "test:1 (part)"


def test_a_passage_part_shorter_than_25_characters_says_nothing(script):
    overlap = script("overlap")
    passage = index(script, passages=["0123456789012345678901234567890"])
    assert passage.find(overlap.key("1234567890123456789012345")) == "test:1 (part)"
    assert passage.find(overlap.key("123456789012345678901234")) is None


def test_overlaps_are_counted_by_test_set_and_the_cleaned_corpus_has_none(script, tmp_path):
    main, data = script("overlap").main, small_data(tmp_path / "data")
    first = CliRunner().invoke(main, ["--data", str(data), "--write", str(tmp_path / "clean")])
    assert first.exit_code == 1, first.output
    rows = {
        cells[1].strip(): cells[3].strip()
        for cells in (r.split("|") for r in first.output.splitlines())
        if len(cells) > 3
    }
    assert rows["Tatoeba (LASER)"] == "1"
    assert rows["STS-b dev and test"] == "1"
    assert "en-de.tsv:31 = tatoeba.deu-eng.deu:1" in first.output
    kept = (tmp_path / "clean" / "en-de.tsv").read_text(encoding="utf-8").splitlines()
    assert len(kept) == 30 + 1
    assert kept[-1] == "train one\tdrei\tntrex"
    again = CliRunner().invoke(main, ["--data", str(data), "--corpus", str(tmp_path / "clean")])
    assert again.exit_code == 0, again.output


def test_a_line_without_its_corpus_is_an_error_that_names_it(script, tmp_path):
    written(tmp_path, de=["a\tb\tntrex", "c\td"])
    with pytest.raises(DataError, match=r"en-de.tsv:2: expected English, translation and corpus .* 'c\td'"):
        list(script("_lines").read_lines(tmp_path))


def test_published_pairs_overlap_that_differ_in_punctuation_alone(script, real_data, tmp_path):
    published = (real_data / "parallel" / "en-ar.tsv").read_text(encoding="utf-8").splitlines()
    lines = list(script("_lines").read_lines(written(tmp_path / "some", ar=published[:1700])))
    overlap, [tatoeba, *_] = script("overlap"), script("_test_sets").test_sets(real_data)
    found = overlap.overlaps(lines, [overlap.Index(tatoeba)])
    assert "Here comes the bus!" in {one.line.source for one in found["Tatoeba (LASER)"]}
    assert "Here comes the bus." in {text for text, _ in tatoeba.texts}
