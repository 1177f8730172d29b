"""Translations of the questions of an episode: whose they are, in which languages, and what is refused."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from helpers.corpus import LANGUAGES, FakeEncoder, episodes_of, retrieval
from metasearch.config.arrangement import Arrangement
from metasearch.config.library import Library, load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.episodes.samplers import QuestionTranslations, check_sizes, samplers
from metasearch.episodes.triplets import NearestCandidates
from metasearch.errors import ConfigError, DataError

LIBRARY = Library()
DEMO = LIBRARY.task("demo")
MODES = [mode.mode for mode in LIBRARY.modes() if mode.arrangements(DEMO)]
GREEK = "el_el -> el_ar -> el_{ar,el,hi}"
DRAWN = "episodes.translations=true"


def translating(data, *arrangements, **settings):
    sampler = episodes_of(data, *arrangements, **settings)
    sampler.translations = QuestionTranslations(data, [Arrangement.parse(text) for text in arrangements], "meta-train")
    return sampler


@pytest.mark.parametrize("mode", MODES)
def test_every_translation_is_of_its_question_in_another_language_of_the_arrangement(mode):
    """So it is never in a zero-shot language, which no arrangement of the mode names; in all phases."""
    benchmark, recipe = load_benchmark("demo", mode), load_recipe("maml-tiny", [DRAWN])
    asked = {(q.language, q.id): q for q in benchmark.data.questions}
    zero_shot = set(DEMO.languages) - {
        code for found in benchmark.arrangements.values() for each in found for code in each.languages
    }
    assert zero_shot
    for sampler in samplers(benchmark, recipe, seed=1).values():
        for episode in sampler.batch(0, 10):
            for example in (example for found in episode.sets for example in found.examples):
                own = example.question
                assert example.translation == asked[example.translation.language, own.id]
                assert example.translation.language in episode.arrangement.languages - {own.language}
                assert example.translation.language not in zero_shot


def test_languages_are_drawn_evenly_for_each_triplet():
    sampler = translating(retrieval(), GREEK, "hi_hi -> de_de", k=12, q=12, n_neg=1)
    drawn = [found for episode in sampler.batch(0, 200) for found in episode.sets]
    of = {code: Counter() for code in ("el", "hi", "de")}
    for found in drawn:
        of[found.variant.query].update(example.translation.language for example in found.examples)
    greek = 100 * 3 * 12
    assert of["el"].keys() == {"ar", "hi"}
    assert of["el"]["ar"] == pytest.approx(greek / 2, rel=0.05)
    assert (of["hi"], of["de"]) == ({"de": 100 * 12}, {"hi": 100 * 12})
    questions = {}
    for example in drawn[0].examples + drawn[2].examples:
        questions.setdefault(example.question.id, set()).add(example.translation.language)
    assert {"ar", "hi"} in questions.values()


@pytest.mark.parametrize("negatives", ["random", "mined"])
@pytest.mark.parametrize("queries", ["random", "similar"])
def test_the_rest_of_an_episode_is_the_same_as_without_translations(queries, negatives):
    data = retrieval()
    rng = np.random.default_rng(0)
    drawn = [(each.text, rng.normal(size=4)) for each in (*data.questions, *data.candidates)]
    embed = FakeEncoder({text: list(vector / np.linalg.norm(vector)) for text, vector in drawn})

    def sampler(make):
        made = make(data, GREEK, queries=queries, negatives=negatives, relative_margin=0, embed=embed)
        made.sets.nearest = NearestCandidates(data, LANGUAGES, embed.encode)
        return made

    without, translated = sampler(episodes_of), sampler(translating)
    for i in range(4):
        found = translated.episode(i)
        plain = [tuple(replace(example, translation=None) for example in each.examples) for each in found.sets]
        assert plain == [each.examples for each in without.episode(i).sets]
        assert found == sampler(translating).episode(i)  # alone, or after others


def test_an_arrangement_of_one_language_has_nothing_to_translate_into():
    with pytest.raises(ConfigError, match=r"^here: el_el -> el_el has no language but el to translate questions into"):
        QuestionTranslations(retrieval(), [Arrangement.parse("el_el -> el_el")], "here")


def lacking(data, *keys):
    return replace(data, questions=tuple(q for q in data.questions if (q.language, q.id) not in keys))


def test_a_question_without_any_translation_is_named_with_task_phase_and_arrangement_and_no_size_is_said_to_fit():
    benchmark, recipe = load_benchmark("demo", "mono-bi"), load_recipe("maml-tiny", [DRAWN])
    train = benchmark.split.train
    gone = train.questions_by_language["ar"][0]
    broken = replace(benchmark, split=replace(benchmark.split, train=lacking(train, ("ar", gone.id))))
    says = (
        rf"^task 'demo', meta-train: episodes\.translations: el_el -> el_ar asks question '{gone.id}' in el, "
        "and it has no translation into ar; add one to the data, or omit it$"
    )
    with pytest.raises(DataError, match=says):
        check_sizes(broken, recipe)
    # Where nothing is drawn of train, nothing of it is missing; nor where no translations are asked for.
    check_sizes(broken, load_recipe("maml-tiny", [DRAWN, "budget.meta_train=0"]))
    check_sizes(broken, load_recipe("maml-tiny"))


def test_one_language_without_the_question_leaves_the_others():
    data = lacking(retrieval(), *(("ar", f"q{i}") for i in range(12)))
    found = translating(data, GREEK).batch(0, 5)
    assert {e.translation.language for episode in found for each in episode.sets for e in each.examples} == {"hi"}
