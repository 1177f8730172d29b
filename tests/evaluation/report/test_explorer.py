"""The explorer shows the right questions with what was ranked where, whatever the texts are, and stays small."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.studies import write_study
from metasearch.evaluation.report.explorer import DEPTH, Explorer, Hit, Question, Side, Version, explore, explorers
from metasearch.evaluation.report.sections import explorer as sections
from metasearch.evaluation.report.sections.explorer import explorer_section
from metasearch.evaluation.study.read import read_study
from metasearch.runs.per_query_results import Text

LANGUAGES = ("ar", "de", "el", "en")
MANY = 1000


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return zero-shot and two learners on two folds with two seeds."""
    arms = {"zero-shot": 0.5, "maml": 2.0, "fine-tune": 1.0}
    folder = tmp_path_factory.mktemp("explored") / "study"
    return read_study([write_study(folder, arms, folds=(0, 1), seeds=(1, 2), languages=LANGUAGES)])


@pytest.fixture(scope="module")
def explorer(study):
    """Return all questions of zero-shot and maml."""
    return explore(study, study.arm("zero-shot"), study.arm("maml"), MANY)


def mean_over_seeds(study, label, fold, unit, language):
    """Return AP@20 of a question, from the kept columns."""
    values = []
    for scored in study.of(study.arm(label)):
        if scored.fold == fold:
            at = scored.questions.units["multilingual", language, "all"].index(unit)
            values.append(scored.questions.columns["map@20", "multilingual", language, "all"][at])
    assert len(values) == 2
    return sum(values) / 2


def island(html):
    """Return the data block of a section, parsed."""
    text = html.split('id="explorer-data">')[1].split("</script>")[0]
    return json.loads(text)


def made(*texts, questions=1, labels=("zero-shot", "maml")):
    """Return an explorer whose questions and candidates are these texts, in turn."""
    texts = tuple(Text(str(i), "de", text) for i, text in enumerate(texts))
    hits = tuple(Hit(i + 1, text, i == 0, 0.5) for i, text in enumerate(texts))
    version = Version(texts[0], (Side(0.2, 0, hits, ()), Side(0.4, 0, hits, ())))
    found = tuple(Question(f"q{i}", 0, (0.2, 0.4), (version,)) for i in range(questions))
    return Explorer(*labels, "map@20", found, questions, (1, 1))


class TestTheQuestions:
    def test_all_of_all_folds_are_compared_with_translations_counted_once(self, explorer):
        assert explorer.compared == 2 * 8  # folds x questions
        assert len({(q.fold, q.id) for q in explorer.questions}) == 2 * 8
        assert all([v.text.language for v in q.versions] == list(LANGUAGES) for q in explorer.questions)

    def test_values_are_means_over_seeds(self, study, explorer):
        question = explorer.questions[3]
        for version in question.versions:
            for label, side in zip(("zero-shot", "maml"), version.sides, strict=True):
                expected = mean_over_seeds(study, label, question.fold, question.id, version.text.language)
                assert side.value == pytest.approx(expected, abs=5e-5)

    def test_the_difference_is_the_mean_over_the_languages(self, study, explorer):
        question = explorer.questions[0]
        differences = [
            mean_over_seeds(study, "maml", question.fold, question.id, language)
            - mean_over_seeds(study, "zero-shot", question.fold, question.id, language)
            for language in LANGUAGES
        ]
        assert question.difference == pytest.approx(sum(differences) / 4, abs=1e-4)

    def test_the_largest_difference_stands_first_whatever_its_sign(self, study, explorer):
        sizes = [abs(q.difference) for q in explorer.questions]
        assert sizes == sorted(sizes, reverse=True)
        swapped = explore(study, study.arm("maml"), study.arm("zero-shot"), MANY)
        assert [q.id for q in swapped.questions] == [q.id for q in explorer.questions]
        assert swapped.questions[0].difference == -explorer.questions[0].difference

    def test_only_folds_of_both_are_compared(self, tmp_path):
        folder = write_study(tmp_path / "study", {"zero-shot": 0.5, "maml": 2.0}, unfinished=("maml/fold-1-seed-0",))
        study = read_study([folder])
        assert {q.fold for q in explorers(study, study.baseline, MANY)[0].questions} == {0, 2}


class TestTheRankings:
    def test_hits_are_the_top_of_the_first_seed(self, study, explorer):
        question = explorer.questions[0]
        version = question.versions[1]
        scored = next(s for s in study.of(study.arm("maml")) if (s.fold, s.seed) == (question.fold, 1))
        ranking = scored.questions.ranking
        row = [(q.id, q.language) for q in ranking.questions].index((question.id, "de"))
        assert version.sides[1].seed == 1
        assert [h.candidate for h in version.sides[1].hits] == [ranking.candidates[i] for i in ranking.top[row][:DEPTH]]
        assert [h.score for h in version.sides[1].hits] == pytest.approx(ranking.scores[row][:DEPTH].tolist(), abs=5e-5)
        assert [h.rank for h in version.sides[1].hits] == list(range(1, DEPTH + 1))

    def test_what_is_relevant_is_among_the_hits_or_below_them(self, explorer):
        for question in explorer.questions:
            for side in (side for version in question.versions for side in version.sides):
                found = [h.candidate for h in (*side.hits, *side.below) if h.relevant]
                assert sorted(text.language for text in found) == sorted(LANGUAGES)
                assert all(f"Sentence {question.id} in" in text.text for text in found)
                below = [h.rank for h in side.below]
                assert below == sorted(below)
                assert all(rank > DEPTH for rank in below)


class TestTheSection:
    def test_the_data_has_what_was_ranked(self, study, explorer):
        data = island(explorer_section(study, study.baseline).html)
        question, expected = data["pairs"][0]["questions"][0], explorer.questions[0]
        assert (question["id"], question["fold"]) == (expected.id, expected.fold)
        for version, v in zip(question["versions"], expected.versions, strict=True):
            assert data["texts"][version["text"]] == [v.text.language, v.text.text]
            for side, s in zip(version["sides"], v.sides, strict=True):
                assert side["value"] == pytest.approx(s.value, abs=5e-5)
                assert [data["texts"][row[1]][1] for row in side["hits"]] == [h.candidate.text for h in s.hits]
                assert [row[0] for row in side["below"]] == [h.rank for h in s.below]

    def test_without_a_script_the_questions_and_values_are_listed(self, study, explorer):
        html = explorer_section(study, study.baseline).html
        listed = html.split("<noscript>")[1].split("</noscript>")[0]
        assert listed.count("<li>") == 2 * 16  # pairs x questions
        assert f"{100 * explorer.questions[0].values[1]:.1f}" in listed
        assert 'lang="ar" dir="auto"' in listed

    @given(st.lists(st.text(), min_size=1, max_size=4))
    def test_any_text_stays_data(self, texts):
        texts = [*texts, "</script><script>alert(1)</script><!--", "a & b", "\u202e \u2028 \x00 \ud800"]
        _, data = sections._within([made(*texts)], sections.LIMIT)
        assert not set("<>&") & set(data)
        data.encode()  # no lone surrogate is left
        read_back = {text for _, text in json.loads(data)["texts"]}
        assert {"</script><script>alert(1)</script><!--", "a & b"} <= read_back

    def test_any_label_is_escaped_in_the_list(self, study):
        odd = [replace(arm, label=f"<b>{arm.label}") for arm in study.arms]
        names = dict(zip(study.arms, odd, strict=True))
        scored = tuple(replace(found, arm=names[found.arm]) for found in study.scored)
        html = explorer_section(replace(study, arms=tuple(odd), scored=scored), odd[0]).html
        assert "<b>" not in html
        assert "&lt;b&gt;zero-shot" in html
        assert "Where is &lt;it&gt; &amp; why" not in html.split("</noscript>")[1]


def test_what_is_explored_does_not_depend_on_the_order_of_sets(tmp_path):
    """The same study gives the same page, byte for byte, also where differences are equal."""
    folder: Path = write_study(tmp_path / "study", {"zero-shot": 50.0, "maml": 50.0}, languages=LANGUAGES)
    first, second = read_study([folder]), read_study([folder])
    assert explorer_section(first, first.baseline) == explorer_section(second, second.baseline)
    assert [(q.fold, q.id) for q in explorers(first, first.baseline)[0].questions] == [
        (fold, f"test{fold}-article-{i}") for fold in range(3) for i in range(8)
    ][:20]
