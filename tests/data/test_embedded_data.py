"""The embedded benchmarks: large enough for every recipe, parallel in all languages, and each in its own script."""

import json

import pytest

from metasearch.config import registry
from metasearch.config.library import Library, shipped
from metasearch.data.locate import locate
from metasearch.data.readers import jsonl

LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr", "en")
SIX_PAIRS = ("ar-ar", "ar-en", "es-es", "es-en", "en-en", "tr-en")


def rows(language):
    text = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def demo():
    task = Library().task("demo").model_copy(update={"languages": list(LANGUAGES)})
    return jsonl.read(shipped() / "demo", task)


@pytest.mark.parametrize("name", ["demo", "demo-sts"])
def test_an_embedded_benchmark_needs_no_data_from_elsewhere(name, monkeypatch):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)
    task, path = Library().task(name), Library().path("task", name)
    expected = registry.load("readers", task.reader).files(task)
    assert locate(task, path, expected) == (shipped() / name).resolve()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_twenty_articles_forty_questions_and_eighty_candidates(demo, language):
    assert len({row["article"] for row in rows(language)}) >= 20
    assert len(demo.questions_by_language[language]) >= 40
    assert sum(candidate.language == language for candidate in demo.candidates) >= 80


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_a_language_is_parallel_to_the_first_in_articles_sentences_questions_and_answers(language):
    def frame(row):
        asked = [(question["id"], question["answer"]) for question in row["questions"]]
        return row["article"], row["paragraph"], len(row["sentences"]), asked

    assert [frame(row) for row in rows(language)] == [frame(row) for row in rows(LANGUAGES[0])]


@pytest.mark.parametrize("pair", SIX_PAIRS)
def test_a_language_pair_has_thirty_pairs_and_scores_from_0_to_5(pair):
    pairs = jsonl.read_CSV(shipped() / "demo-sts", Library().task("demo-sts")).pairs
    scores = [5 * found.score for found in pairs if found.pair == pair]
    assert len(scores) >= 30
    assert min(scores) <= 0.5
    assert max(scores) >= 4.5
    assert {min(int(score), 4) for score in scores} == {0, 1, 2, 3, 4}
