"""TREC run files in a comparison: what is written is read back as the same scores, and bad lines are named."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from helpers.corpus import FakeEncoder
from metasearch.cli import main
from metasearch.config.run import DataConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.study.bias import measure_arm_bias, measure_ranking_bias
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study
from metasearch.evaluation.study.trec_runs import write_ranking

DEMO = DataConfig(task="demo")


@pytest.fixture(scope="module")
def benchmark():
    return load_benchmark(DEMO)


def random_evaluation(benchmark, seed, depth=10**6):
    rng, test = np.random.default_rng(seed), benchmark.split.test
    texts = dict.fromkeys([*(each.text for each in test.questions), *(each.text for each in test.candidates)])
    encoder = FakeEncoder(dict(zip(texts, rng.normal(size=(len(texts), 8)).astype(np.float32), strict=True)))
    return evaluate(encoder, test, benchmark.measures, depth=depth)


def test_a_ranking_that_is_written_is_read_back_with_its_scores_and_its_language_bias(tmp_path, benchmark):
    whole = random_evaluation(benchmark, 0)
    write_ranking(tmp_path / "a.trec", whole.questions.ranking, "system a")
    write_ranking(tmp_path / "b.trec", random_evaluation(benchmark, 1).questions.ranking, "b")
    study = read_study([tmp_path / "a.trec", tmp_path / "b.trec"], data=DEMO)
    assert [arm.label for arm in study.arms] == ["system_a", "b"]
    assert study.folds == (0,)
    found = {(row["measure"], row["language"]): row["value"] for row in study.scored[0].rows}
    assert found == {(row["measure"], row["language"]): row["value"] for row in whole.rows()}
    bias = measure_arm_bias(study, study.arms[0])
    assert bias.figures == measure_ranking_bias(whole.questions.ranking)
    # The interval of the difference is that of the same questions, in pairs.
    (arm,) = compare(study).arms
    assert arm.interval.low <= arm.difference <= arm.interval.high
    (itself,) = [each for each in compare(study, study.arm("b")).arms if each.arm.label == "system_a"]
    assert itself.difference == pytest.approx(-arm.difference)


def test_documents_that_a_run_lacks_rank_below_the_relevant_ones_last(tmp_path, benchmark):
    """A run of 20 documents has the exact mAP@20 and shares; a run of one document has AP@20 of that document alone."""
    whole, test = random_evaluation(benchmark, 0), benchmark.split.test
    write_ranking(tmp_path / "top.trec", random_evaluation(benchmark, 0, 20).questions.ranking, "top")
    question = test.questions[0]
    answers = [each for each in test.candidates if question.id in each.answers]
    line = f"{question.language}:{question.id} Q0 {answers[0].id} 1 0.5 one\n"
    (tmp_path / "one.trec").write_text(line, encoding="utf-8")
    study = read_study([tmp_path / "top.trec", tmp_path / "one.trec"], data=DEMO)
    top, one = study.scored
    assert top.values("map@20", "multilingual") == pytest.approx(
        {(s.language, s.candidates): s.value for s in whole.scores if s.measure == "map@20"}
    )
    found, exact = (measure_ranking_bias(each.questions.ranking) for each in (top, whole))
    assert (found.bias, found.correlation) == (exact.bias, exact.correlation)
    # One of R answers is first: AP@20 is 1 / min(R, 20) for this question, 0 for all others of its language.
    asked = [each for each in test.questions if each.language == question.language]
    expected = 1 / min(len(answers), 20) / len(asked)
    assert one.values("map@20", "multilingual")[question.language, "all"] == pytest.approx(expected)
    assert one.questions.ranking is None


LINE = "{query} Q0 {document} {rank} {score} s"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "de:none"}, "x.trec:2: no test question of task 'demo' is named 'de:none'; names are LANGUAGE:ID"),
        ({"document": "none"}, "x.trec:2: document 'none' is not among the"),
        ({"score": "nan"}, "x.trec:2: score 'nan' is not finite"),
        ({"rank": "first"}, "x.trec:2: rank 'first' and score '0.5': expected a whole number"),
        ({"score": "0.5 0.5"}, "x.trec:2: expected 'query Q0 document rank score system'"),
        ({"score": "0.5 t\n\nde:x Q0 d 1 0.5"}, "x.trec:2: system 't', but 's' above"),
        ({}, "x.trec:2: duplicate document '.*' for this query, first in .*x.trec:1"),
    ],
)
def test_a_bad_line_is_named(tmp_path, benchmark, change, message):
    test = benchmark.split.test
    good = {"query": f"{test.questions[0].language}:{test.questions[0].id}", "document": test.candidates[0].id}
    good |= {"rank": "1", "score": "0.5"}
    path = tmp_path / "x.trec"
    text = f"{LINE.format(**good)}\n{LINE.format(**good | change)}"
    path.write_text(text if text.endswith(" s") else f"{text} s", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_study([path], data=DEMO)


def test_questions_of_two_folds_are_refused(tmp_path, benchmark):
    other = load_benchmark(DEMO, fold=1).split.test.questions[0]
    first = benchmark.split.test.questions[0]
    lines = [f"{each.language}:{each.id} Q0 d 1 0.5 s\n" for each in (first, other)]
    (tmp_path / "x.trec").write_text("".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"x.trec:1 is a test question of fold 0, and .*x.trec:2 of fold 1"):
        read_study([tmp_path / "x.trec"], data=DEMO)


def test_a_run_file_needs_its_task(tmp_path):
    (tmp_path / "x.trec").write_text("q Q0 d 1 0.5 s\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="does not name its task; add --task"):
        read_study([tmp_path / "x.trec"])


@pytest.mark.slow
def test_evaluate_writes_a_run_that_compare_and_report_read(tmp_path):
    def run(*words):
        found = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
        assert found.exit_code == 0, found.output
        return found.stdout

    scores = {}
    for pool in ("multilingual", "balanced"):
        asked = ["--task", "demo", "--encoder", "tiny", "--pool", pool, "--trec-run", tmp_path / f"{pool}.trec"]
        rows = json.loads(run("evaluate", *asked, "--json"))["results"]
        scores[pool] = next(r["value"] for r in rows if (r["measure"], r["language"]) == ("map@20", "mean"))
    files = tmp_path / "multilingual.trec", tmp_path / "balanced.trec"
    found = json.loads(run("compare", *files, "--task", "demo", "--json"))
    (arm,) = found["arms"]
    assert arm["label"] == "tiny+balanced"
    assert arm["difference"] == pytest.approx(scores["balanced"] - scores["multilingual"])
    run("report", *files, "--task", "demo", "-o", tmp_path / "report")
    assert "tiny+balanced" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
