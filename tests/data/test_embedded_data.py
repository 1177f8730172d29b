"""The embedded benchmarks: large enough for every recipe, parallel in all languages, and each in its own script."""

import json
import re
import unicodedata
from collections import Counter

import pytest

from metasearch.config import registry
from metasearch.config.library import Library, shipped
from metasearch.data.locate import locate
from metasearch.data.readers import csv, jsonl

LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr", "en")
SIX_PAIRS = ("ar-ar", "ar-en", "es-es", "es-en", "en-en", "tr-en")
SCRIPTS = {"ar": "ARABIC", "el": "GREEK", "hi": "DEVANAGARI", "ru": "CYRILLIC", "th": "THAI"}
# Letters that tell a language of Latin script apart from English.
SIGNS = {"de": "äöüß", "tr": "ığşçöü", "es": "áéíóúñ¿"}


def rows(language):
    """Return the paragraphs of a language as they are written."""
    text = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def sentences(language):
    """Return all sentences of a language."""
    return [sentence for row in rows(language) for sentence in row["sentences"]]


def share_of(script, text):
    """Return how many of the letters of a text are of a script, from 0 to 1."""
    letters = [sign for sign in text if sign.isalpha()]
    return sum(unicodedata.name(sign).startswith(script) for sign in letters) / len(letters)


@pytest.fixture(scope="module")
def demo():
    """Return the retrieval benchmark in all eight languages."""
    task = Library().task("demo").model_copy(update={"languages": list(LANGUAGES)})
    return jsonl.read(shipped() / "demo", task)


@pytest.fixture(scope="module")
def demo_sts():
    """Return the similarity benchmark."""
    return csv.read(shipped() / "demo-sts", Library().task("demo-sts"))


@pytest.mark.parametrize("name", ["demo", "demo-sts"])
def test_an_embedded_benchmark_needs_no_data_from_elsewhere(name, monkeypatch):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)
    task, path = Library().task(name), Library().path("task", name)
    expected = registry.load("readers", task.reader).files(task)
    assert locate(task, path, expected) == (shipped() / name).resolve()


def test_the_folders_hold_one_file_for_each_language_and_pair():
    assert {path.name for path in (shipped() / "demo").iterdir()} == {f"{code}.jsonl" for code in LANGUAGES}
    assert {path.name for path in (shipped() / "demo-sts").iterdir()} == {f"{pair}.csv" for pair in SIX_PAIRS}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_twenty_articles_forty_questions_and_eighty_candidates(demo, language):
    assert len({row["article"] for row in rows(language)}) >= 20
    assert len(demo.questions_by_language[language]) >= 40
    assert sum(candidate.language == language for candidate in demo.candidates) >= 80


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_paragraph_has_several_sentences_and_a_question(language):
    assert min(len(row["sentences"]) for row in rows(language)) >= 2
    assert min(len(row["questions"]) for row in rows(language)) >= 1


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_a_language_is_parallel_to_the_first_in_articles_sentences_questions_and_answers(language):
    def frame(row):
        asked = [(question["id"], question["answer"]) for question in row["questions"]]
        return row["article"], row["paragraph"], len(row["sentences"]), asked

    assert [frame(row) for row in rows(language)] == [frame(row) for row in rows(LANGUAGES[0])]


def test_every_question_has_one_answer_in_each_language(demo):
    for question in demo.questions:
        counted = {language: len(found) for language, found in demo.answers[question.id].items()}
        assert counted == dict.fromkeys(LANGUAGES, 1)


def test_a_language_holds_no_sentence_and_no_question_of_another(demo):
    """A text that stands in two files was left untranslated."""
    texts = Counter(text for code in LANGUAGES for text in set(sentences(code)))
    asked = Counter(question.text for question in demo.questions)
    assert [text for text, count in (texts + asked).items() if count > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_stands_twice_in_a_language(language):
    assert [text for text, count in Counter(sentences(language)).items() if count > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_mostly_in_the_script_of_its_language(demo, language):
    """A name such as DNA may stay in Latin letters."""
    script = SCRIPTS.get(language, "LATIN")
    texts = [*sentences(language), *(question.text for question in demo.questions_by_language[language])]
    assert [text for text in texts if share_of(script, text) < 0.6] == []
    assert share_of(script, " ".join(texts)) > 0.95


@pytest.mark.parametrize("language", ["de", "tr"])
def test_a_language_in_latin_script_has_letters_of_its_own(language):
    """English has them in names alone, such as that of the Çanakkale Bridge."""

    def share(code):
        return sum(bool(set(SIGNS[language]) & set(text.lower())) for text in sentences(code)) / len(sentences(code))

    assert share(language) > 1 / 2
    assert share("en") < 1 / 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_trimmed_composed_and_hold_no_control_characters(demo, language):
    for text in [*sentences(language), *(question.text for question in demo.questions_by_language[language])]:
        assert text == text.strip() == unicodedata.normalize("NFC", text)
        assert re.search(r"[\x00-\x1f\ufffd]|  ", text) is None


@pytest.mark.parametrize("pair", SIX_PAIRS)
def test_a_language_pair_has_thirty_pairs_and_scores_from_0_to_5(demo_sts, pair):
    scores = [5 * found.score for found in demo_sts.pairs if found.pair == pair]
    assert len(scores) >= 30
    assert min(scores) <= 0.5
    assert max(scores) >= 4.5
    assert {min(int(score), 4) for score in scores} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("pair", SIX_PAIRS)
def test_no_pair_stands_twice(demo_sts, pair):
    found = Counter(frozenset((one.text1, one.text2)) for one in demo_sts.pairs if one.pair == pair)
    assert [texts for texts, count in found.items() if count > 1] == []


@pytest.mark.parametrize("pair", SIX_PAIRS)
def test_the_sentences_of_a_pair_are_in_the_languages_of_its_name(demo_sts, pair):
    found = [one for one in demo_sts.pairs if one.pair == pair]
    for column, language in enumerate(pair.split("-")):
        texts = [(one.text1, one.text2)[column] for one in found]
        assert [text for text in texts if share_of(SCRIPTS.get(language, "LATIN"), text) < 0.6] == []
        if language in SIGNS:
            assert any(set(SIGNS[language]) & set(text.lower()) for text in texts)
