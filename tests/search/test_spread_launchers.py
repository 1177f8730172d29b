"""An index by jobs of each launcher, with real processes: the runner and a job are killed."""

import pytest

from helpers import slurm_cluster
from helpers.chaos import kill_one
from helpers.commands import metasearch
from helpers.launchers import LAUNCHERS, Runner, place
from metasearch.search.query.shards import FOLDER

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

TEXTS = 6000


@pytest.fixture
def documents(tmp_path):
    rows = (f'{{"text": "Text {n} {"and more " * (n * 7 % 11)}"}}\n' for n in range(TEXTS))
    (tmp_path / "docs.jsonl").write_text("".join(rows))
    return tmp_path / "docs.jsonl"


def check(flags, documents, kills_job):
    """Kill the runner, then a job, and compare the index with that of one process."""
    one, plain = documents.with_name("one"), documents.with_name("plain")
    common = ["index", documents, "--encoder=mini", "--device=cpu"]
    command = [*common, "-o", one, *flags, "--jobs=2"]
    shards = one / FOLDER
    with Runner(*command) as runner:
        runner.until(lambda: len([*shards.glob("*.vectors")]) > 1)
        runner.killed()
    with Runner(*command) as runner:
        runner.until(lambda: len([*shards.glob("*.vectors")]) > 3)
        if kills_job:
            assert kill_one("submitit.core._submit", str(shards))
        code, said, wrote = runner.ended()
    assert code == 0, wrote
    assert "Traceback" not in wrote
    assert "documents: 1 (1 new" in said
    metasearch(*common, "-o", plain)
    assert sorted(path.name for path in one.iterdir()) == [".lock", "index.sqlite", "projection"]
    assert rows(one) == rows(plain)


def rows(folder):
    """Return passages and vectors as a search reads them."""
    from metasearch.search.index.local import LocalStore

    store = LocalStore.open(folder)
    store.verify()
    return [*store.passages(range(len(store)))], store.quantised.codes.tobytes(), store.quantised.steps.tobytes()


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_killed_runner_and_a_killed_job_change_no_bit(name, tmp_path, documents):
    (tmp_path / "bin").mkdir()
    with place(name, tmp_path / "bin") as (flags, _):
        check(flags or ["--launcher=local"], documents, kills_job=name == "local")


def test_on_a_real_cluster_of_slurm(documents):
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster():
        check(["--launcher=slurm", "--launcher-set=cpus=1"], documents, kills_job=True)
