"""New passages are encoded in jobs: the same index as without, whatever dies, and each part of a shard once."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from helpers.commands import metasearch
from helpers.forks import Fork
from helpers.forks import metasearch as call
from helpers.indexes import content
from helpers.job_forks import forked
from metasearch.encoders.builtin import tiny
from metasearch.search import spread
from metasearch.search.index.writer import IndexWriter
from metasearch.search.query import shards

ROWS = 600
PARTS = 3
"""600 texts in parts of 256, 256 and 88."""
JOBS = ["--launcher=local", "--jobs=2"]


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Documents where the test runs; jobs are forks."""
    monkeypatch.chdir(tmp_path)
    write("docs/a.jsonl", range(ROWS))
    return forked(monkeypatch)


def write(path, numbers):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        rows = ({"text": f"Text {n} ä " + "and more " * (n * 7 % 11), "price": n / 7, "tags": ["a"]} for n in numbers)
        file.writelines(json.dumps(row) + "\n" for row in rows)


def index(name, *flags, code=0, docs="docs", encoder="tiny"):
    return metasearch("index", docs, "-o", name, f"--encoder={encoder}", "--device=cpu", *flags, code=code)


def same_as_plain(name):
    index("plain")
    assert content(name) == content("plain")
    assert sorted(os.listdir(name)) == [".lock", "index.sqlite", "projection"]  # vectors of one language are centred


@pytest.fixture
def encoded(monkeypatch, tmp_path):
    encode = shards._encode

    def heard(source, target, *rest):
        if done := encode(source, target, *rest):
            shutil.copy(source.with_name("done.jsonl"), tmp_path / "done.jsonl")
        return done

    monkeypatch.setattr(shards, "_encode", heard)
    return lambda: [json.loads(line)["texts"] for line in (tmp_path / "done.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_any_number_of_jobs_gives_the_index_of_this_process_bit_by_bit(jobs, encoded):
    for number in (1, 2, 9):
        index(f"by-{number}", "--launcher=local", f"--jobs={number}")
        same_as_plain(f"by-{number}")
        assert sorted(encoded()) == [88, 256, 256]
    assert jobs.submitted == ["job-1", "job-1", "job-2", *(f"job-{n}" for n in range(1, PARTS + 1))]


@pytest.mark.slow
def test_an_update_encodes_what_is_new_and_begins_no_job_for_nothing(jobs, encoded):
    index("one", *JOBS)
    index("plain")
    write("docs/b.jsonl", range(ROWS - 10, ROWS + 5))
    assert "615 (5 encoded now)" in index("one", *JOBS).output
    assert encoded() == [5]
    assert jobs.submitted == ["job-1", "job-2", "job-1"]
    index("one", *JOBS)
    assert len(jobs.submitted) == 3
    same_as_plain("one")


def killed_at_second(killed):
    """Kill this process when it begins its second part, whose lock it holds; touch `killed` before."""
    encode, begun = shards._encode, []

    def dies(*args):
        begun.append(args)
        if len(begun) == 2:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(*args)

    shards._encode = dies


@pytest.mark.slow
def test_the_part_of_a_killed_job_is_encoded_by_another_and_no_other_part_again(jobs, encoded, tmp_path):
    killed = tmp_path / "killed"

    def begins(name):
        if name == "job-1":
            killed_at_second(killed)
        while name == "job-2" and not killed.exists():  # else it may encode all parts before job-1 has its second
            time.sleep(0.01)

    jobs.first = staticmethod(begins)
    said = index("one", *JOBS).stderr
    assert "job-1 failed, and others have encoded its texts: its job was killed: " in said
    assert sorted(encoded()) == [88, 256, 256]
    same_as_plain("one")


@pytest.mark.slow
def test_jobs_that_are_all_killed_end_the_command_and_the_next_one_goes_on(jobs, encoded, tmp_path):
    jobs.first = staticmethod(lambda name: killed_at_second(tmp_path / "killed"))
    said = index("one", "--launcher=local", code=7).stderr
    assert "error: 1 of the jobs failed. Encoded texts are kept; run the same command again to continue:\n" in said
    assert said.count("\n  job-1: its job was killed: ") == 1
    jobs.first = staticmethod(lambda name: None)
    index("one", *JOBS)
    assert sorted(encoded()) == [88, 256, 256]
    same_as_plain("one")


@pytest.mark.slow
def test_a_runner_that_is_killed_while_it_stores_vectors_goes_on(jobs, encoded, monkeypatch):
    upsert = IndexWriter.upsert

    def dies(self, *args):
        upsert(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    write("docs/a.jsonl", range(1100))  # shards of 1,024 and 76 texts
    monkeypatch.setattr(IndexWriter, "upsert", dies)
    runner = Fork(call("index", "docs", "-o", "one", "--encoder=tiny", "--device=cpu", "--launcher=local"))
    assert runner.finished()[0] == -signal.SIGKILL
    monkeypatch.setattr(IndexWriter, "upsert", upsert)
    assert "1,100 (76 encoded now)" in index("one", *JOBS).output
    assert sorted(encoded()) == [76, *[256] * 4]
    same_as_plain("one")


@pytest.mark.slow
def test_an_encoder_that_no_job_can_find_or_that_is_another_one_there_is_named(jobs, tmp_path):
    for seed in (0, 1):
        tiny.build(seed=seed).save(tmp_path / f"encoder-{seed}")

    def replaced(name):
        shutil.rmtree("encoder-0")
        shutil.copytree("encoder-1", "encoder-0")

    for first, said in ((lambda name: shutil.rmtree("encoder-0"), "encoder-0"), (replaced, "other weights")):
        shutil.copytree("encoder-0", "kept")
        jobs.first = staticmethod(first)
        wrote = index("one", "--launcher=local", code=7, encoder="encoder-0").stderr
        assert f"  job-1: exit code 6: encoder '{tmp_path / 'encoder-0'}" in wrote
        assert said in wrote.partition("job-1: ")[2]
        shutil.rmtree("encoder-0", ignore_errors=True)
        shutil.move("kept", "encoder-0")
    jobs.first = staticmethod(lambda name: None)
    index("one", *JOBS, encoder="encoder-0")


@pytest.mark.slow
def test_a_damaged_file_of_vectors_is_encoded_again(jobs, encoded, monkeypatch):
    found, cut = shards.Shards.vectors, []

    def damaged(self, name, texts):
        if not cut and (path := self.folder / f"{name}-0.vectors").exists():
            cut.append(path.write_bytes(path.read_bytes()[:-1]))
        return found(self, name, texts)

    monkeypatch.setattr(shards.Shards, "vectors", damaged)
    assert "-0.vectors is damaged; its texts are encoded again" in index("one", "--launcher=local").stderr
    assert sorted(encoded()) == [88, 256, 256, 256]
    same_as_plain("one")


@pytest.mark.slow
def test_a_damaged_file_of_passages_is_named(jobs):
    jobs.first = staticmethod(lambda name: os._exit(1))
    index("one", "--launcher=local", code=7)
    (path,) = (path for path in Path("one/shards").glob("*.json") if path.name != shards.PLAN)
    path.write_bytes(path.read_bytes().replace(b"Text 7", b"Text 8"))
    jobs.first = staticmethod(lambda name: None)
    for _ in range(2):
        assert f"{path.name} is damaged; delete it and run" in index("one", "--launcher=local", code=5).stderr
    path.unlink()
    index("one", "--launcher=local")
    same_as_plain("one")


@pytest.mark.slow
def test_a_second_runner_is_refused_and_ctrl_c_stops_the_jobs(jobs, encoded, monkeypatch):
    submit, said = jobs.submit, []

    def pressed(self, names):
        submit(self, names)
        said.append(index("one", *JOBS, code=5).stderr)
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "submit", pressed)
    wrote = index("one", *JOBS, code=130).stderr
    assert "error: one: another process writes this index; wait for it to end\n" in said[0]
    assert "error: stopped; 0 of 600 new texts are encoded and kept; run the same command again" in wrote
    monkeypatch.setattr(jobs, "submit", submit)
    index("one", *JOBS)
    same_as_plain("one")


@pytest.mark.slow
def test_without_a_launcher_the_index_is_finished_here_and_left_shards_are_removed(jobs):
    jobs.first = staticmethod(lambda name: os._exit(1))
    index("one", *JOBS, code=7)
    assert os.path.isdir("one/shards")
    index("one")
    same_as_plain("one")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--jobs=0", "--launcher=local"], "Invalid value for '--jobs': 0 is not in the range x>=1"),
        (["--jobs=2"], "--jobs 2 goes with --launcher local, slurm or ray"),
        (["--launcher=slrum"], "unknown choice 'slrum'. Did you mean 'slurm'? Known: local, ray, slurm"),
        (["--launcher-set=cpus=2"], "--launcher-set cpus=2 goes with --launcher slurm or ray"),
        (["--launcher=slurm", "--launcher-set=cpu=2"], "Did you mean 'cpus'?"),
    ],
)
def test_wrong_flags_are_one_line_before_anything_is_made(tmp_path, flags, said):
    wrote = metasearch("index", tmp_path, "-o", tmp_path / "one", *flags, code=2).stderr
    assert said in wrote
    assert wrote.count("\n") == 1
    assert not (tmp_path / "one").exists()


def test_a_launcher_that_is_not_there_is_named_before_documents_are_read(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("A text.")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("metasearch.search.query.update.Plan", None)
    wrote = metasearch(
        "index", tmp_path / "a.txt", "-o", tmp_path / "one", "--encoder=tiny", "--launcher=slurm", code=2
    )
    assert "error: srun is not found: --launcher slurm needs Slurm's commands" in wrote.stderr


def test_the_number_of_threads_does_not_depend_on_the_number_of_jobs(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(spread, "open_launcher", lambda *args: asked.append(args[2]) or 1 / 0)
    for settings, jobs in (({}, 1), ({}, 8), ({"cpus": "4"}, 8)):
        place = spread.LauncherConfig("slurm", settings)
        with pytest.raises(ZeroDivisionError), spread.by_jobs(place, jobs, False, None, tmp_path):
            pass
    assert asked == [1, 1, 4]
