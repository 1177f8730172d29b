"""The texts of metasearch-mini: the check that none stands in a test set, and joined ones."""

from pathlib import Path

import pytest

from benchmarks.mini import joined, overlap, test_sets
from benchmarks.mini.corpus_lines import Line
from helpers.files import write
from metasearch.config.distillation import CorpusSettings
from metasearch.data.formats.blank import comparison_key
from metasearch.data.parallel.corpus import read_corpus

ANSWER = "the tower was built by a king who liked bells"


def line(source, target, language="de", corpus="ntrex"):
    return Line(Path(f"en-{language}.tsv"), 1, language, source, target, corpus)


def index(*texts, passages=()):
    placed = tuple((text, f"test:{i}") for i, text in enumerate((*texts, *passages), 1))
    return overlap.Index(test_sets.TestSet("T", placed, placed[len(texts) :]))


def test_texts_are_the_same_up_to_case_width_punctuation_and_spaces():
    same = {"Here comes the bus!": "here  comes, the BUS.", "«Ｃafé» – 5 €": "cafe\u0301 5", "Straße": "STRASSE"}
    for one, other in {**same, "हिन्दी में।": "हिन्दी में"}.items():
        assert comparison_key(one) == comparison_key(other)


def test_either_side_of_a_pair_overlaps_and_others_do_not():
    lines = [line("One.", "Eins."), line("Two.", "Zwei."), line("Three.", "Drei.")]
    found = overlap.overlaps(lines, [index("one", "x", "ZWEI!")])
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
def test_a_part_of_a_passage_overlaps_from_25_characters_and_so_does_what_holds_a_sentence_of_it(text, place):
    found = index(ANSWER, passages=[f"In those days {ANSWER} and drums."]).find(comparison_key(text))
    assert found == (place if text != ANSWER else "test:1")
    if text == ANSWER:
        assert index(passages=[f"In those days {ANSWER}"]).find(comparison_key(text)) == "test:1 (part)"


def test_a_passage_part_shorter_than_25_characters_says_nothing():
    passage = index(passages=["0123456789012345678901234567890"])
    assert passage.find(comparison_key("1234567890123456789012345")) == "test:1 (part)"
    assert passage.find(comparison_key("123456789012345678901234")) is None


def parallel(count, languages=("de", "el"), corpus="ntrex", words=3):
    """Return pairs of which sentence i is `corpus-i` and some words, and its translation has its language in front."""
    texts = [" ".join([f"{corpus}-{i}", *["word"] * (words - 1)]) for i in range(count)]
    return [line(text, f"{code}:{text}", code, corpus) for code in languages for text in texts]


def test_a_join_has_2_to_5_sentences_of_one_corpus_and_its_translation_the_same_ones():
    lines = [*parallel(40), *parallel(40, corpus="tatoeba")]
    made = joined.joined(lines, joined.Settings(share=1, others=0.5, front=0))
    assert len([one for one in made if one.corpus == "ntrex"]) == 2 * 40 * 1
    assert len([one for one in made if one.corpus == "tatoeba"]) == 2 * 40 * 0.5
    for one in made:
        names = [word for word in one.source.split() if word != "word"]
        assert 2 <= len(names) == len(set(names)) <= 5
        assert {name.split("-")[0] for name in names} == {one.corpus}
        assert one.target == " ".join(f"{one.language}:{name} word word" for name in names)
    assert {len(one.source.split()) // 3 for one in made} == {2, 3, 4, 5}


def test_what_a_distillation_of_the_seed_holds_out_is_in_no_join(tmp_path):
    """The corpus and its joins are read together, as by `metasearch distill`."""
    lines = "".join(f"english {i}\tdeutsch {i}\tntrex\n" for i in range(60))
    folder = write(tmp_path / "corpus" / "en-de.tsv", lines).parent
    joined.make(folder, tmp_path / "joined", joined.Settings(seed=3), dev=10)
    train, dev = read_corpus([folder, tmp_path / "joined"], CorpusSettings()).hold_out(10, 3)
    held = {pair.source for pair in dev if len(pair.source.split()) == 2}
    parts = [text.split() for text in {pair.source for pair in train}]
    assert held
    assert not held & {f"english {number}" for words in parts if len(words) > 2 for number in words[1::2]}
