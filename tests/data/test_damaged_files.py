"""Damaged data is refused with a `DataError` that names the file, the line or key path, and what was expected."""

import json

import pytest

from helpers.formats import copy, read
from metasearch.errors import DataError


def spoil(form, name, damage, tmp_path):
    """Copy a fixture, damage one of its files, and return what reading it says."""
    folder = copy(form, tmp_path)
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError) as caught:
        read(form, folder)
    return str(caught.value)


def swap(old, new):
    def damage(sound):
        text = sound.decode()
        assert old in text
        return text.replace(old, new, 1).encode()

    return damage


def test_files_of_different_length_are_refused_with_their_rows(tmp_path):
    shorter = swap("A child rides a horse.,A child swims.,1.2\n", "")
    message = spoil("stsb-multi-mt", "stsb-en-dev.csv", shorter, tmp_path)
    assert "stsb-en-dev.csv 1, stsb-de-dev.csv 2" in message


def test_rows_without_ids_are_refused_where_languages_have_not_equally_many(tmp_path):
    """One that is missing would make each question behind it the translation of another."""
    message = spoil("jsonl-labelled", "de.jsonl", lambda sound: b"".join(sound.splitlines(True)[1:]), tmp_path)
    assert message.startswith(f"{tmp_path / 'jsonl-labelled' / 'el.jsonl'}:3: a question without an id is a transl")
    assert "in its place (3) in other languages, and de has none there" in message


FIRST_QUESTION = "data[0].paragraphs[0].qas[0]"


@pytest.mark.parametrize(
    ("form", "name", "damage", "place", "expected"),
    [
        ("xquad-r", "el.json", lambda sound: b"[]", ": top level", "input should be"),
        ("xquad-r", "el.json", lambda sound: b'{"data": []}', ": data", "expected articles with questions, found none"),
        ("xquad-r", "ar.json", swap('"question"', '"ask"'), f": {FIRST_QUESTION}.question", "field required"),
        ("xquad-r", "ar.json", swap('"question": "', '"question": "\\ud800'), f": {FIRST_QUESTION}.question", "U+D800"),
        ("xquad-r", "ar.json", swap('"answers": [', '"answers": [], "old": ['), f": {FIRST_QUESTION}.answers", "got 0"),
        ("xquad-r", "ar.json", swap('"answer_start": ', '"answer_start": 9'), f": {FIRST_QUESTION}", "0 sentences"),
        ("xquad-r", "el.json", swap("       0,", "       -5,"), ": data[", "sentence_breaks"),
        (
            "xquad-r",
            "el.json",
            swap('"answer_start": 28', '"answer_start": 29'),
            f": {FIRST_QUESTION}",
            "'Η βασίλισσα', but at 29",
        ),
        ("xquad-r", "el.json", swap('"text": "έ', '"text": "Έ'), f": {FIRST_QUESTION[:-2]}1]", "is 'έξι εβδομάδες'"),
        ("xquad-r", "el.json", swap('"answer_start": 28', '"answer_start": true'), f": {FIRST_QUESTION}", "integer"),
        ("xquad-r", "tr.json", swap("q-weeks", "q-queen"), f": {FIRST_QUESTION[:-2]}1]", "duplicate id 'q-queen'"),
        ("semeval2017", "STS.gs.track2.ar-en.txt", swap("3.75", "3,75"), ":3", "a score from 0 to 5, got '3,75'"),
        ("csv-labelled", "de.csv", swap("nile,", "queen,"), ":3", "duplicate id 'queen', first in "),
        ("jsonl-paragraphs", "el.jsonl", lambda sound: b'{"sentences": ["a"]}\n', "", "expected rows with questions"),
        ("jsonl-labelled", "de.jsonl", swap('"answer": "Honig."', '"answer": ["Honig."]'), ":3: answer", "string"),
        ("jsonl-paragraphs", "de.jsonl", swap('"id": "queen"', '"id": true'), ":1: questions[0].id", "string"),
        ("jsonl-paragraphs", "de.jsonl", swap('"sentences"', '"sentence"'), ":1: sentence", "Did you mean 'sentences'"),
        ("jsonl-paragraphs", "de.jsonl", swap('"answer": 1', '"answer": 2'), ":1", "a sentence number 0 to 1, got 2"),
        ("jsonl-paragraphs", "de.jsonl", swap('"bee-2"', '"bee-1"'), ":2", "duplicate paragraph 'bee-1', first in "),
        ("csv-labelled", "de.csv", swap("context", "contxt"), ":", "contxt: unknown field. Did you mean 'context'"),
        ("stsb-multi-mt", "stsb-en-train.csv", swap(",2.5", ""), ":1", "sentence1, sentence2, score; got 2 columns"),
        ("semeval2017", "STS.input.track5.en-en.txt", swap("\t", " "), ":1", "two tab-separated sentences"),
        ("jsonl-pairs", "de-de.jsonl", swap("4.5", "true"), ":1: score", "number"),
        ("jsonl-pairs", "de-de.jsonl", swap("4.5", "NaN"), ":1", "a score from 0 to 5, got 'nan'"),
        ("csv-pairs", "el-de.csv", swap("Es regnet.", ""), ":2: text2", "field required"),
        ("csv-pairs", "el-de.csv", lambda sound: sound.splitlines()[0], "", "expected rows with text1, text2 and"),
    ],
)
def test_damage_is_refused_with_its_place_and_what_was_expected(form, name, damage, place, expected, tmp_path):
    message = spoil(form, name, damage, tmp_path)
    assert message.startswith(f"{tmp_path / form / name}{place}")
    assert expected in message


def test_questions_of_paragraphs_without_ids_are_refused_where_one_is_missing(tmp_path):
    """As many questions are in both languages, of which the second is in another paragraph each."""
    one, two = ({"sentences": [text], "questions": [{"question": text, "answer": 0}]} for text in ("One.", "Two."))
    rows = {"de": [one, two], "el": [one, {"sentences": ["A paragraph that nothing is asked of."]}, two]}
    for language, own in rows.items():
        (tmp_path / f"{language}.jsonl").write_text("\n".join(map(json.dumps, own)), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read("jsonl-paragraphs", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'el.jsonl'}:3: a question without an id is a translation of that in its")
    assert "(3-1) in other languages, and de has none there" in message
