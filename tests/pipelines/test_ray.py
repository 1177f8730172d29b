"""What is particular to studies on a Ray cluster: nodes that vanish, resources that no node has, no cluster at all."""

import socket

import pytest

from helpers.crossval import FLAGS, TUNED, inline, run, scores
from helpers.launchers import NODE, Runner, ray_cluster
from metasearch.config.extras import install_line
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.process import attempts

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

LONG = [*FLAGS, "--max-steps=60", "--set=budget.meta_train=4000", "--set=budget.eval_every=0"]


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as found:
        yield found


def test_a_cell_whose_node_vanishes_goes_on_on_another_to_the_same_scores(cluster, tmp_path):
    study = StudyFolder(tmp_path / "study")
    log = study.at(TUNED) / "log.jsonl"
    flags = [*LONG, "--launcher=ray", f"--launcher-set=address={cluster.address}", "-o", study.path]
    with Runner("crossval", *flags) as runner:
        runner.until(lambda: log.is_file() and '"step": 3,' in log.read_text(encoding="utf-8"))
        (node,) = cluster.worker_nodes
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=2, **NODE)
        code, _, wrote = runner.ended()
    assert code == 0, wrote
    assert f"{TUNED} waiting: its node or worker of Ray is gone" in wrote
    assert attempts(study, TUNED) == 2
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        run(*LONG, "-o", tmp_path / "whole")
    assert scores(study.path) == scores(tmp_path / "whole")


def test_what_no_node_has_is_refused_and_ray_status_named(cluster, tmp_path):
    asked = f"--launcher-set=address={cluster.address} cpus=64 gpus=2"
    said = run(*FLAGS, "--launcher=ray", asked, "-o", tmp_path / "study", code=2).stderr
    assert "no node of the Ray cluster has what a cell needs, CPU 64, GPU 2; `ray status` shows what there is" in said


def test_where_no_cluster_answers_a_line_says_how_to_start_one(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason=f"Ray is not installed: {install_line('ray')}")
    ray.shutdown()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    said = run(*FLAGS, "--launcher=ray", f"--launcher-set=address={address}", "-o", tmp_path / "study", code=2).stderr
    assert f"no Ray cluster at address '{address}': [Errno 111] Connection refused. Start one with: ray start" in said
