"""A text of characters that show nothing is no text: every reader refuses it, or drops and counts its line."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.formats import copy, read
from helpers.passages import shown
from metasearch.data.formats.blank import blank, normalise, remove_invisible
from metasearch.data.texts import read_tagged, read_texts
from metasearch.errors import DataError

UNSEEN = " \u200b\u200c\u200d\u2060\ufeff"
SAYS = "got only characters that show nothing"


@pytest.mark.parametrize(
    "character", "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u202e\u2066\u034f\u3164\ufe0f\x01\x1b"
)
def test_a_character_that_shows_nothing_is_blank_alone_and_not_beside_another_one(character):
    assert blank(character) == "only characters that show nothing"
    assert blank(f" {character}a") == ""


def test_of_controls_and_format_characters_those_that_shape_what_is_beside_them_are_kept():
    """Beside white space and what is drawn: joiners, and controls of Mongolian, hieroglyphs and shorthand."""
    every = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in ("Cc", "Cf")]
    kept = {c for c in every if remove_invisible(c) and blank(c) == "only characters that show nothing"}
    assert {"\u200c", "\u200d", "\u180e"} <= kept
    assert {unicodedata.name(c, "UNNAMED").split()[0] for c in kept - {"\u200c", "\u200d"}} <= {
        "MONGOLIAN", "EGYPTIAN", "SHORTHAND", "UNNAMED",
    }  # fmt: skip


def test_tags_are_kept_in_the_flag_of_a_region_and_nowhere_else():
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"
    assert remove_invisible(f"a{tags}\U0001f3f4{tags}!{tags}") == f"a\U0001f3f4{tags}!"


@given(st.text(st.characters() | st.sampled_from("\u200b\u200d\ufeff\u00ad \n\U0001f3f4\U000e0067")))
def test_a_text_is_as_blank_without_the_characters_that_are_removed(text):
    found = remove_invisible(text)
    assert remove_invisible(found) == found
    assert bool(blank(found)) == bool(blank(text))
    assert [c for c in found if not blank(c)] == [c for c in text if not blank(c)]


@pytest.mark.parametrize(
    ("form", "name", "text", "place"),
    [
        ("xquad-r", "el.json", "Ποια γεννά τα αυγά;", ": data[0].paragraphs[0].qas[0].question: expected a text, "),
        ("xquad-r", "el.json", "Η βασίλισσα", ": data[0].paragraphs[0].qas[0].answers[0].text: expected a text, "),
        ("semeval2017", "STS.input.track5.en-en.txt", "A bird sings.", ":1: expected a text, "),
        ("stsb-multi-mt", "stsb-en-dev.csv", "A child swims.", ":2: expected a text, "),
        ("jsonl-paragraphs", "de.jsonl", "Bienen machen Honig.", ":1: sentences[0]: expected a text, "),
        ("jsonl-paragraphs", "de.jsonl", "Wer legt Eier?", ":1: questions[0].question: expected a text, "),
        ("jsonl-labelled", "de.jsonl", "Honig.", ":3: answer: expected a text, "),
        ("jsonl-pairs", "de-de.jsonl", "Es regnet.", ":1: text2: expected a text, "),
        ("csv-labelled", "de.csv", "Nach Norden.", ":3: answer: expected a text, "),
        ("csv-pairs", "el-de.csv", "Es regnet.", ":2: text2: expected a text, "),
    ],
)
def test_a_reader_refuses_it_with_its_place(form, name, text, place, tmp_path):
    path = copy(form, tmp_path) / name
    sound = path.read_text(encoding="utf-8")
    # The answers of XQuAD-R stand in its paragraphs, too, which come first.
    at = sound.rindex(text) if form == "xquad-r" else sound.index(text)
    path.write_text(sound[:at] + UNSEEN + sound[at + len(text) :], encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(form, path.parent)
    assert str(caught.value) == f"{path}{place}{SAYS}"


def test_a_sentence_of_xquad_r_that_shows_nothing_is_refused(tmp_path):
    path = copy("xquad-r", tmp_path) / "el.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"context": "Ο Νείλος ρέει', f'"context": "{UNSEEN * 5}'), encoding="utf-8")
    with pytest.raises(DataError, match=r"sentence_breaks\[0\]: expected a sentence from 0 to 29, got only characters"):
        read("xquad-r", path.parent)


@pytest.mark.parametrize("reading", [lambda path: list(read_texts([path])), lambda path: read_tagged([path], 9)])
def test_a_file_of_nothing_else_has_no_text(reading, tmp_path):
    path = tmp_path / "de.txt"
    path.write_text(f"{UNSEEN}\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"de\.txt: the file has no text"):
        reading(path)


@pytest.mark.parametrize("form", ["jsonl-labelled", "jsonl-pairs"])
def test_a_line_of_a_task_that_shows_nothing_is_passed_over_like_a_blank_one(form, tmp_path):
    before = read(form, copy(form, tmp_path / "before"))
    folder = copy(form, tmp_path / "after")
    for path in folder.glob("*.jsonl"):
        path.write_text(path.read_text(encoding="utf-8").replace("\n", f"\n{UNSEEN}\n"), encoding="utf-8")
    assert read(form, folder) == before


@pytest.mark.parametrize(("name", "row"), [("a.jsonl", '{"text": "Bees."}'), ("a.tsv", "Bees.")])
def test_a_line_of_a_document_that_shows_nothing_is_passed_over_like_a_blank_one(name, row, tmp_path):
    head = "" if name.endswith("l") else "text\n"
    assert shown(tmp_path / name, f"{UNSEEN}\n{head}{UNSEEN}\n{row}\n")[0][1] == "Bees."


# Look-alikes, as in the EMA teacher paper: NFKC, and one symbol each for quotes and dashes.


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("“quoted” „zitiert“ «cité» ＂full＂ 5″", '"quoted" "zitiert" "cité" "full" 5"'),
        ("‘quoted’ ‚zitiert‘ ‹cité› `this´ l’eau 5′", "'quoted' 'zitiert' 'cité' 'this' l'eau 5'"),
        ("one‐two‑three 1–2 yes — no ―quoth he −4", "one-two-three 1-2 yes - no -quoth he -4"),
        ("ＡＢＣ ﬁne ① x² カ\uff9e", "ABC fine 1 x2 ガ"),
        ("\u00a0 no\u00a0break\u3000wide \n", "no break wide"),
        ("`ascii'", "'ascii'"),
    ],
)
def test_variants_of_a_symbol_are_written_in_one_way(written, expected):
    assert normalise(written) == expected


@pytest.mark.parametrize("text", ["プール", "בית־ספר", "don't", "well-known", "人々「日本」〜", "soft\u00adhyphen"])
def test_letters_and_marks_of_one_script_stay_as_they_are(text):
    assert normalise(text) == text


@given(st.text())
@example("e\u2032\u0301")
@example("\u00a8")
def test_twice_is_the_same_as_once_and_the_result_is_nfkc(text):
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFKC", once)
