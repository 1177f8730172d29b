"""Measures of the languages of answers among the scores of a report."""

import numpy as np
import pytest

from helpers.studies import Made, write_study
from metasearch.config.measure import Measure
from metasearch.errors import ConfigError
from metasearch.evaluation.report.build import build
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study

ARMS = {"zero-shot": Made(1.0, 0.0), "biased": Made(1.0, 8.0)}
MEASURES = ("map@20", "own-ndcg@20", "others-recall@20", "best-own", "worst-rank")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder, measures = tmp_path_factory.mktemp("answers") / "study", [Measure.parse(m, "retrieval") for m in MEASURES]
    return read_study([write_study(folder, ARMS, folds=(0, 1), questions=12, distractors=20, measures=measures)])


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


def test_a_task_whose_first_measure_is_a_rank_is_compared_by_the_next(tmp_path):
    measures = [Measure("worst-rank"), Measure("map")]
    study = read_study([write_study(tmp_path / "study", ARMS, (0,), measures=measures)])
    assert study.select().measure == "map"
