"""Studies on a real Ray cluster that loses nodes, memory or its head."""

import pytest

from helpers import ray_cluster
from helpers.crossval import EIGHT, LONG, TUNED, ZERO, attempts, scores, undisturbed
from helpers.launchers import Runner
from metasearch.pipelines.study.folder import StudyFolder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]


@pytest.fixture
def cluster():
    with ray_cluster.cluster() as found:
        yield found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The scores of the same study in this process."""
    return undisturbed(tmp_path_factory.mktemp("expected") / "study", *EIGHT)


@pytest.fixture
def study(tmp_path):
    return StudyFolder(tmp_path / "a study's folder")


def quiet(said, wrote):
    """Check that Ray's own messages are lines of the log, and none is on stdout, where the table is."""
    lines = wrote.splitlines()
    assert all(line.startswith(("metasearch: ", "  ")) for line in lines if ".cc:" not in line), wrote
    assert "raylet" not in said


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_head_ends_the_study_with_one_line_and_it_resumes_on_another_cluster(cluster, study, expected, restarts):
    with Runner("crossval", *EIGHT, *cluster.flags, "-o", study.path) as runner:
        runner.until(lambda: f"{ZERO} done" in runner.wrote())
        if restarts:
            cluster.restart_head()
        else:
            cluster.kill("head")
        code, said, wrote = runner.ended()
    assert code == 10, wrote
    quiet(said, wrote)
    why = "RPC error: WrongClusterID" if restarts else "[Errno 111] Connection refused"
    assert f":{cluster.port} is lost ({why}" in wrote
    assert "Continue with: metasearch resume" in wrote
    cluster.kill(*cluster.nodes)
    with ray_cluster.cluster() as other, Runner("resume", study.path, *other.flags) as runner:
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    assert scores(study.path) == expected
    assert attempts(study, ZERO) == 1


def test_cells_that_need_more_memory_than_there_is_fail_after_some_attempts(cluster, study, monkeypatch):
    monkeypatch.setenv("RAY_task_oom_retries", "1")
    cluster.kill("one", "two")
    cluster.begin_node("small", RAY_memory_usage_threshold="0.01")
    with Runner("crossval", *LONG, *cluster.flags, "-o", study.path) as runner:
        code, said, wrote = runner.ended()
    assert code == 7, wrote
    quiet(said, wrote)
    assert f"  {TUNED}: its task of Ray failed: " in wrote
    assert "memory" in wrote.partition(f"  {TUNED}: ")[2].partition("\n")[0]
