"""A task names its measures, and what comes after a run takes any of them: tables, comparison and report."""

import json
import re

import pytest

from helpers.commands import metasearch
from helpers.declarations import write_variant
from metasearch.config.measure import RETRIEVAL_POOLS
from metasearch.evaluation.study.read import read_study
from metasearch.runs.rows import read_rows

pytestmark = pytest.mark.slow  # a model is trained

MEASURES = ["ndcg@10", "mrr", "recall@5", "precision@5", "complete@10", "map@20"]


def declare(folder, measures, monitor):
    """Write the demo task with other measures as task `mine`; return the flags that name it."""
    write_variant(folder, "demo", "mine", measures=measures, monitor=monitor)
    return ["--task", "mine", "--include", folder]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measures")
    flags = ["--mode", "trans", "--learner", "maml", "--encoder", "tiny", "--max-steps", "1", "-o", folder / "run"]
    small = ["budget.meta_batch=1", "options.inner_steps=1", "episodes.k=2", "episodes.q=2"]
    metasearch("train", *declare(folder, MEASURES, "ndcg@10"), *flags, *(f"--set={value}" for value in small))
    return folder / "run"


def test_every_measure_is_scored_in_every_pool_and_kept_of_every_question(run):
    (arm, *_) = (scored for scored in read_study([run]).scored if scored.arm.label == "maml")
    assert {(row["measure"], row["pool"]) for row in arm.rows if row["split"] == "test"} == {
        (measure, pool) for measure in MEASURES for pool in RETRIEVAL_POOLS
    }
    for measure in MEASURES:
        for (language, inside), value in arm.values(measure, "multilingual").items():
            values = arm.questions.columns[measure, "multilingual", language, inside]
            assert value == pytest.approx(values.mean(), abs=1e-12)


def test_the_score_on_dev_that_training_watches_is_the_monitor(run):
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    rows = read_rows(run / "results.jsonl")
    before = [
        row["value"]
        for row in rows
        if (row["learner"], row["split"], row["measure"], row["language"]) == ("zero-shot", "dev", "ndcg@10", "mean")
    ]
    (at_the_start,) = (event["dev"] for event in events if event["step"] == 0)
    assert [at_the_start] == before


def test_measures_of_languages_are_printed_for_pools_of_several_languages_with_ranks(tmp_path):
    measures = ["map@20", "others-recall@20", "best-own", "worst-rank"]
    flags = ["--encoder", "tiny", "--pool", "multilingual", "--pool", "monolingual"]
    result = metasearch("evaluate", *declare(tmp_path, measures, "map@20"), *flags, "-o", tmp_path / "rows.jsonl")
    rows = read_rows(tmp_path / "rows.jsonl")
    assert {row["pool"] for row in rows if row["measure"] != "map@20"} == {"multilingual"}
    (worst,) = [row["value"] for row in rows if (row["measure"], row["language"]) == ("worst-rank", "mean")]
    assert 7 <= worst <= 175  # seven answers among as many candidates
    assert re.search(rf"\| worst-rank +\| +{worst:.2f} \| +\|", result.stdout)
