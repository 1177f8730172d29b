"""`torchrun -m metasearch train` and `distill`: the files of one process, whatever stops them, and one line."""

import json
import os
import signal

import pytest

from helpers.parallel import save_assistant, write_corpus
from helpers.torchrun import by_torchrun, finished, process_of, said, started, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

FLAGS = [
    *("--task=demo-sts", "--mode=mono-bi-multi", "--encoder=tiny", "--device=cpu"),
    *(f"--set=budget.{key}" for key in ("meta_train=24", "meta_valid=8", "meta_batch=4", "eval_every=2", "patience=0")),
    *("--set=budget.shards=4", "--set=episodes.k=2", "--set=episodes.q=2", "--set=dropout=true"),
]


def train(out, *more):
    return "metasearch", "train", *FLAGS, *more, "-o", out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of one process, and what a distillation reads."""
    folder = tmp_path_factory.mktemp("processes")
    code, _, errors = by_torchrun(1, *train(folder / "whole"))
    assert code == 0, errors
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    return folder


def rows(path):
    """Return the lines of a file without the times that they name."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in row.items() if key not in ("seconds", "time")} for row in lines]


def assert_same_run(out, whole):
    """Assert that two runs have the same weights, log and scores."""
    for name in ("log.jsonl", "results.jsonl"):
        assert rows(out / name) == rows(whole / name)
    for name in ("model/model.safetensors", "config.yaml"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def facts(folder):
    return json.loads((folder / "facts.json").read_text(encoding="utf-8"))


def test_a_run_of_two_processes_has_the_files_of_one(place, tmp_path):
    code, out, errors = by_torchrun(2, *train(tmp_path / "two"))
    assert code == 0, errors
    assert_same_run(tmp_path / "two", place / "whole")
    assert out.count("# maml-align on demo-sts") == 1
    assert errors.count("scoring zero-shot on dev") == 1
    assert (facts(place / "whole")["processes"], facts(tmp_path / "two")["processes"]) == (1, 2)


def test_a_run_whose_process_is_killed_ends_with_one_line_and_goes_on_with_another_number(place, tmp_path):
    run = tmp_path / "run"
    agent = started(2, *train(run))
    wait_for(run / "checkpoint", agent)
    os.kill(process_of(1, agent), signal.SIGKILL)
    code, _, errors = finished(agent)
    assert code == 1  # torchrun's own
    lines, codes = said(errors)
    assert lines == [
        "metasearch: error: another process of the run has ended, or cannot be reached. "
        f"Go on with: metasearch resume {run}"
    ]
    assert codes == {-signal.SIGKILL, 10}
    code, _, errors = by_torchrun(4, "metasearch", "resume", run)
    assert code == 0, errors
    assert_same_run(run, place / "whole")


@pytest.mark.parametrize(
    "rank",
    [
        pytest.param(0, id="first"),
        pytest.param(1, id="second", marks=pytest.mark.exhaustive),
        pytest.param(None, id="torchrun", marks=pytest.mark.exhaustive),
    ],
)
def test_a_signal_to_any_process_stops_all_after_the_same_step(place, tmp_path, rank):
    run = tmp_path / "run"
    agent = started(2, *train(run))
    wait_for(run / "checkpoint", agent)
    os.kill(agent.pid if rank is None else process_of(rank, agent), signal.SIGTERM)
    _, _, errors = finished(agent)
    (line,), codes = said(errors)
    assert line.startswith("metasearch: error: stopped after outer step ")
    assert line.endswith(f"; model and checkpoint are saved. Go on with: metasearch resume {run}")
    assert codes <= {143}
    code, _, errors = by_torchrun(1, "metasearch", "resume", run)
    assert code == 0, errors
    assert_same_run(run, place / "whole")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("train", *FLAGS, "--set=budget.shards=1"), "2 processes cannot share 1 shard (budget.shards=1); start 1 at"),
        pytest.param(("train", *FLAGS, "--task=dmeo-sts"), "unknown task 'dmeo-sts'", marks=pytest.mark.exhaustive),
    ],
)
def test_an_error_of_all_processes_is_one_line(tmp_path, command, problem):
    code, _, errors = by_torchrun(2, "metasearch", *command, *(["-o", tmp_path / "run"] if "train" in command else []))
    (line,), codes = said(errors)
    assert line.startswith(f"metasearch: error: {problem}")
    # The first that ends makes torchrun stop the others, which may be about to end alike, or still be starting.
    assert code == 1
    assert {2} <= codes <= {2, 143, -signal.SIGTERM}
    assert not (tmp_path / "run").exists()
