"""Several processes of one `metasearch train`: the files of one process, whatever stops them, and one line."""

import json
import signal

import pytest

from helpers.forks import Fork, metasearch
from helpers.parallel import flags as distill_flags
from helpers.parallel import save_assistant, small, weights, write_corpus
from helpers.torchrun import by_torchrun, ended, forked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

FLAGS = [
    *("--task=demo-sts", "--mode=mono-bi-multi", "--encoder=tiny", "--device=cpu"),
    *(f"--set=budget.{key}" for key in ("meta_train=12", "meta_valid=4", "meta_batch=4", "eval_every=2", "patience=0")),
    *("--set=budget.shards=4", "--set=episodes.k=2", "--set=episodes.q=2", "--set=dropout=true"),
    "--set=options.inner_steps=1",
]


def train(out, *more):
    return "train", *FLAGS, *more, "-o", out


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of one process."""
    folder = tmp_path_factory.mktemp("processes") / "whole"
    assert_done([Fork(metasearch(*train(folder)))])
    return folder


def assert_done(forks):
    codes, errors = ended(forks)
    assert codes == {0}, errors


def stopped(run, number, rank):
    """Begin a run of two processes, send one a signal at its first checkpoint, and return how both end."""
    forks = forked(2, metasearch(*train(run)))
    forks[0].wait_until((run / "checkpoint").exists)
    forks[rank].send_signal(number)
    return ended(forks)


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


def test_a_run_of_two_processes_of_torchrun_has_the_files_of_one(whole, tmp_path):
    code, out, errors = by_torchrun(2, *train(tmp_path / "two"))
    assert code == 0, errors
    assert_same_run(tmp_path / "two", whole)
    assert out.count("# maml-align on demo-sts") == 1
    assert errors.count("scoring zero-shot on dev") == 1
    assert (facts(whole)["processes"], facts(tmp_path / "two")["processes"]) == (1, 2)


def test_a_run_whose_process_is_killed_ends_with_one_line_and_resumes_with_another_number(whole, tmp_path):
    run = tmp_path / "run"
    codes, lines = stopped(run, signal.SIGKILL, 1)
    assert lines == [
        "metasearch: error: another process of the run has ended or cannot be reached. "
        f"Continue with: metasearch resume {run}"
    ]
    assert codes == {-signal.SIGKILL, 10}
    assert_done([Fork(metasearch("resume", run))])
    assert_same_run(run, whole)


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_signal_to_any_process_stops_all_after_the_same_step(tmp_path, rank):
    run = tmp_path / "run"
    codes, (line,) = stopped(run, signal.SIGTERM, rank)
    assert line.startswith("metasearch: error: stopped after outer step ")
    assert line.endswith(f"; model and checkpoint are saved. Continue with: metasearch resume {run}")
    assert codes == {143}


def test_a_distillation_of_two_processes_has_the_models_of_one(tmp_path):
    write_corpus(tmp_path / "corpus")
    save_assistant(tmp_path / "assistant")
    sizes = small("assistant", "student", budget__shards=2)
    call = ["distill", *distill_flags(tmp_path, "--stages=3", "--device=cpu", *sizes, steps=2)]
    for count in (1, 2):
        assert_done(forked(count, metasearch(*call, "-o", tmp_path / f"{count}")))
    assert weights(tmp_path / "2" / "3-student") == weights(tmp_path / "1" / "3-student")


def test_an_error_of_all_processes_is_one_line(tmp_path):
    codes, (line,) = ended(forked(2, metasearch(*train(tmp_path / "run", "--set=budget.shards=1"))))
    assert line.startswith("metasearch: error: 2 processes cannot share 1 shard (budget.shards=1); start 1 at")
    assert codes == {2}
    assert not (tmp_path / "run").exists()
