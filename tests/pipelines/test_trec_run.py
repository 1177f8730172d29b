"""A ranking as a TREC run file: trec_eval reads the scores of the evaluation from it."""

from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval

from helpers.corpus import FakeEncoder
from metasearch.config.run import DataConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.score import write_ranking


@pytest.fixture(scope="module")
def split():
    return load_benchmark(DataConfig(task="demo")).split.test


@pytest.fixture(scope="module")
def evaluated(split):
    texts = dict.fromkeys([*(each.text for each in split.questions), *(each.text for each in split.candidates)])
    vectors = np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)
    measures = load_benchmark(DataConfig(task="demo")).measures
    return evaluate(FakeEncoder(dict(zip(texts, vectors, strict=True))), split, measures, depth=10**6)


def test_trec_eval_measures_the_same_map(tmp_path, split, evaluated):
    write_ranking(tmp_path / "a.trec", evaluated.questions.ranking, "system a")
    with (tmp_path / "a.trec").open(encoding="utf-8") as file:
        run = pytrec_eval.parse_run(file)
    judged = {
        f"{asked.language}:{asked.id}": {each.id: 1 for each in split.candidates if asked.id in each.answers}
        for asked in split.questions
    }
    found = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
    for score in (each for each in evaluated.scores if each.measure == "map"):
        own = [values["map"] for query, values in found.items() if query.startswith(f"{score.language}:")]
        assert np.mean(own) == pytest.approx(score.value, abs=1e-6)
    assert (tmp_path / "a.trec").read_text(encoding="utf-8").splitlines()[0].endswith(" system_a")


def test_a_name_with_white_space_is_refused(tmp_path, evaluated):
    ranking = evaluated.questions.ranking
    candidates = tuple(replace(each, id="two words") for each in ranking.candidates)
    with pytest.raises(DataError, match=r"a\.trec: 'two words' cannot be a name in a TREC run file"):
        write_ranking(tmp_path / "a.trec", replace(ranking, candidates=candidates), "a")
    assert not (tmp_path / "a.trec").exists()
