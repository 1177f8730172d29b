"""The section on the languages of answers, and measures of languages among the scores of a report."""

import numpy as np
import pytest

from helpers.studies import Made, write_study
from metasearch.config.measure import Measure
from metasearch.errors import ConfigError
from metasearch.evaluation.report.build import build, files
from metasearch.evaluation.report.section import Inputs
from metasearch.evaluation.report.sections import answers
from metasearch.evaluation.report.sections.answers import measure_answers
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study

ARMS = {"zero-shot": Made(1.0, 0.0), "biased": Made(1.0, 8.0)}
MEASURES = ("map@20", "own-ndcg@20", "others-recall@20", "best-own", "worst-rank")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder, measures = tmp_path_factory.mktemp("answers") / "study", [Measure.parse(m, "retrieval") for m in MEASURES]
    return read_study([write_study(folder, ARMS, folds=(0, 1), questions=12, distractors=20, measures=measures)])


def tables_of(study):
    made = answers.section(Inputs(study, study.select(), None))
    return made and {table.key: table for table in made.tables}


def cells(table, learner):
    (line,) = [line for line in table.lines if line.heads[0] == learner]
    return dict(zip(table.columns, line.cells, strict=True))


def test_each_figure_is_the_mean_over_folds_with_its_spread(study):
    folds = [measure_answers(scored.questions.ranking) for scored in study.of(study.arm("biased"))]
    tables = tables_of(study)
    found = [cell for table in tables.values() for cell in cells(table, "biased").values()]
    assert [cell.value for cell in found] == pytest.approx(np.mean(folds, axis=0).tolist())
    assert [cell.spread for cell in found] == pytest.approx(np.std(folds, axis=0, ddof=1).tolist())
    assert [table.scale for table in tables.values()] == [100, 1, 100]


def test_an_encoder_that_prefers_its_language_finds_that_answer_first_and_the_others_late(study):
    tables = tables_of(study)
    plain, biased = (cells(tables["answers-found"], learner) for learner in ARMS)
    assert biased["best answer is own"].value == 1
    assert plain["best answer is own"].value < 0.6
    assert plain["1/L"].value == 1 / 3
    assert biased["recall@20 of other languages"].value < plain["recall@20 of other languages"].value
    worst = [cells(tables["answers-worst"], learner)["median"].value for learner in ARMS]
    assert worst[0] < worst[1]
    first = cells(tables["answers-first"], "biased")
    assert first["answer, other"].value == first["no answer, other"].value == 0
    assert sum(cell.value for cell in first.values()) == pytest.approx(1)


def test_a_task_with_one_language_has_no_such_section(tmp_path):
    assert tables_of(read_study([write_study(tmp_path / "study", ARMS, (0,), languages=("de",))])) is None


def test_measures_of_languages_are_compared_and_ranks_are_only_shown(study):
    (arm,) = compare(study, measure="own-ndcg@20").arms
    assert arm.difference > 0
    with pytest.raises(ConfigError, match=r"^measure 'worst-rank' is a rank, of which lower is better; learners are"):
        compare(study, measure="worst-rank")
    tables = {table.key: table for section in build(study).sections for table in section.tables}
    ranks = tables["main-worst-rank"]
    assert (ranks.scale, ranks.unit) == (1, "ranks, lower is better")
    assert {cell.place for line in ranks.lines for cell in line.cells} == {""}
    assert not any("bold" in note for note in ranks.notes)
    values = np.mean([[*scored.values("worst-rank", "multilingual").values()] for scored in study.of(study.arms[1])])
    assert ranks.shown(ranks.lines[1].cells[-1]).startswith(f"{values:.2f}")
    assert "## Languages of the answers" in files(build(study))["report.md"]


def test_a_task_whose_first_measure_is_a_rank_is_compared_by_the_next(tmp_path):
    measures = [Measure("worst-rank"), Measure("map")]
    study = read_study([write_study(tmp_path / "study", ARMS, (0,), measures=measures)])
    assert study.select().measure == "map"
