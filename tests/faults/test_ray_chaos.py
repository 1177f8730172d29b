"""A study on a real cluster of Ray while workers, nodes and runners are killed at random moments."""

import random
from itertools import count

import pytest

from helpers import ray_cluster
from helpers.chaos import Chaos, FinishedCells
from helpers.crossval import FLAGS, inline, run, scores
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

STUDY = [*FLAGS, "--seeds=0,1,2,3", "--max-steps=40", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]
NUMBERS = count(1)


def disturb(cluster, runner):
    """Kill one thing at random; return its name."""
    what = random.choice(["worker", "worker", "node", "runner"])
    if what == "worker":
        return what if cluster.kill_worker() else "nothing"
    if what == "node":
        cluster.kill(random.choice([name for name in cluster.nodes if name != "head"]))
        cluster.begin_node(f"new-{next(NUMBERS)}")
    else:
        runner.killed()
    return what


def test_what_is_done_is_done_once_whatever_is_killed(tmp_path):
    with ray_cluster.cluster() as cluster:
        with pytest.MonkeyPatch.context() as patch:
            inline(patch)
            run(*STUDY, "-o", tmp_path / "expected")
        study, chaos, code = StudyFolder(tmp_path / "study"), Chaos(), None
        cells = FinishedCells(study)
        while code != 0:
            command = ["crossval", *STUDY, *cluster.flags, "-o", study.path]
            code = chaos.run(command, lambda runner: disturb(cluster, runner), (2, 10), cells.watch)
    assert set(chaos.ends) <= {0, 7, -9}
    rows = scores(study.path)
    assert rows == scores(tmp_path / "expected")
    assert len(cells) == 8
    print(f"\n{chaos}; {len(cells)} of 8 cells, {len(rows)} scores")  # noqa: T201
