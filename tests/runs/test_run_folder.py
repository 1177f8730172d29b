"""The files of a run: whole or not there, and read only if they are those that it wrote."""

import json
import subprocess

import pytest

from helpers.configs import nested
from helpers.files import largest_file
from metasearch.config.library import load_recipe
from metasearch.config.run import RunConfig
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.runs.folder import SUMS, RunFolder

CONFIG = nested(
    RunConfig, task="demo", mode="trans", encoder="tiny", recipe=load_recipe("maml-tiny"), fold=3, max_steps=7
)


@pytest.fixture
def files(tmp_path):
    return RunFolder.create(tmp_path / "run", CONFIG, "abc")


def test_the_configuration_is_read_back_as_it_was_written(tmp_path):
    RunFolder.create(tmp_path / "run", CONFIG, "abc", {"encoder": "12"})
    files = RunFolder(tmp_path / "run")
    begun = files.stored(RunConfig)
    assert (begun.config, begun.data_fingerprint, begun.weights) == (CONFIG, "abc", {"encoder": "12"})
    assert not files.finished


def test_a_wrong_value_of_a_configuration_is_named_with_its_line(tmp_path):
    RunFolder.create(tmp_path / "run", CONFIG, "abc")
    path = tmp_path / "run" / "config.yaml"
    text = path.read_text(encoding="utf-8").replace("fold: 3", "fold: three")
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index("    fold: three") + 1
    with pytest.raises(ConfigError, match=f"config.yaml:{line}: config.data.fold: .*got 'three'"):
        RunFolder(tmp_path / "run").stored(RunConfig)


def test_facts_that_rows_share_are_written_once_and_read_back_with_each_in_every_script(files):
    assert files.results() == []
    versions = {"numpy": "2.0"}
    rows = [{"split": "dev", "fold_seed": None, "language": at, "value": 0.5, "versions": versions} for at in "aθ"]
    files.add_results(rows)
    files.add_results([{"split": "test", "value": 1}])
    assert files.results() == [*rows, {"split": "test", "value": 1}]
    text = (files.path / "results.jsonl").read_text()
    assert "θ" in text
    assert [json.loads(line) for line in text.splitlines()] == [
        {"facts": {"split": "dev", "fold_seed": None, "versions": versions}},
        {"language": "a", "value": 0.5},
        {"language": "θ", "value": 0.5},
        {"facts": {}},
        {"split": "test", "value": 1},
    ]


def test_a_damaged_line_of_the_results_is_named(files, tmp_path):
    files.add_results([{"a": 1}, {"b": 2}])
    path = files.path / "results.jsonl"
    path.write_text(path.read_text()[:-4])
    with pytest.raises(DataError, match=r"results.jsonl:3: not JSON.*To score again, delete .*results.jsonl"):
        files.results()
    path.write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"results.jsonl: damaged.*can't decode"):
        files.results()


def test_a_full_disk_keeps_the_results_that_were_there(files, tmp_path):
    files.add_results([{"a": 1}])
    with largest_file(4096), pytest.raises(RunFolderError, match=r"results.jsonl cannot be written"):
        files.add_results({"n": i} for i in range(1000))
    assert files.results() == [{"a": 1}]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["config.yaml", "results.jsonl"]


def test_a_run_is_finished_when_its_report_is_written_and_needs_no_checkpoint_then(files, tmp_path):
    (tmp_path / "run" / "checkpoint").mkdir()
    files.finish("# done\n")
    assert files.finished
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_events_are_read_back_in_their_order(files, tmp_path):
    assert files.events() == []
    told = [{"step": 0, "dev": 0.5}, {"step": 1, "loss": 0.1, "phase": "θ\u2028"}]
    for event in told:
        files.log(event)
    assert files.events() == told
    assert len((files.path / "log.jsonl").read_text().splitlines()) == len(told)


@pytest.mark.parametrize("kept", range(1, 12))
def test_an_event_that_was_cut_off_is_left_out_and_the_next_one_stands_on_a_line_of_its_own(files, tmp_path, kept):
    files.log({"step": 1})
    files.log({"step": 2})
    path = files.path / "log.jsonl"
    line = b'{"step": 2}\n'
    path.write_bytes(path.read_bytes()[: -len(line)] + line[:kept])
    before = [{"step": 1}, {"step": 2}][: 2 if kept == len(line) - 1 else 1]  # whole but for the end of the line
    again = RunFolder(tmp_path / "run")
    assert again.events() == before
    again.log({"step": 3})
    assert path.read_text() == "".join(json.dumps(event) + "\n" for event in [*before, {"step": 3}])


@pytest.mark.parametrize(("goes_on_with", "kept"), [({"step": 0, "dev": 0.5}, 0), ({"step": 2}, 2), ({"step": 3}, 4)])
def test_steps_that_a_crash_left_behind_the_checkpoint_are_logged_once(files, tmp_path, goes_on_with, kept):
    told = [{"step": 0, "dev": 0.5}, {"step": 1}, {"step": 2}, {"step": 2, "dev": 0.6}, {"step": 3}]
    for event in told:
        files.log(event)
    again = RunFolder(tmp_path / "run")
    for event in (goes_on_with, {"step": 9, "dev": 0.7}, {"step": 9}):
        again.log(event)
    assert again.events() == [*told[:kept], goes_on_with, {"step": 9, "dev": 0.7}, {"step": 9}]


def test_damaged_lines_within_a_log_are_named_in_one_warning_and_the_last_line_may_be_cut_off(files, tmp_path, caplog):
    path = files.path / "log.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 2}\n{"step": true}\n{"step": 3}\n{"ste')
    assert files.events() == [{"step": 1}, {"step": 2}, {"step": 3}]
    assert caplog.messages == [f"{path}: skipped 2 damaged lines, the first is line 2"]


@pytest.mark.parametrize("line", ["3", "[]", "[" * 100_000, '{"phase": "mono"}', '{"step": "2"}', '{"step": null}'])
def test_a_line_of_a_log_that_is_no_event_is_left_out(files, tmp_path, line):
    (files.path / "log.jsonl").write_text(f'{line}\n{{"step": 1}}\n')
    assert files.events() == [{"step": 1}]
    files.log({"step": 2})
    assert files.events() == [{"step": 1}, {"step": 2}]


def test_a_folder_that_a_process_left_before_its_run_began_is_taken(tmp_path):
    (tmp_path / "run").mkdir()
    for name in (".lock", "config.yaml.new"):
        (tmp_path / "run" / name).write_text("half")
    assert not RunFolder.create(tmp_path / "run", CONFIG, "abc").finished


def test_only_in_the_folder_of_a_run_resume_is_advised(tmp_path):
    RunFolder.create(tmp_path / "run", CONFIG, "abc")
    with pytest.raises(RunFolderError, match=r"/run exists already; .*, or continue with: metasearch resume .*/run$"):
        RunFolder.create(tmp_path / "run", CONFIG, "abc")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.yaml").write_text("defaults: [db]\n")  # of another program
    for name in ("file", "other"):
        with pytest.raises(RunFolderError, match=f"/{name} exists already and is no run; choose another folder"):
            RunFolder.create(tmp_path / name, CONFIG, "abc")


def writing(name, fails=False):
    """Return a function that writes a file of this name, and fails after it where it is told to."""

    def save(folder):
        folder.mkdir()
        (folder / name).write_text("weights")
        if fails:
            raise OSError("no room")

    return save


def test_a_model_is_written_whole_or_the_former_one_stays(tmp_path):
    files = RunFolder(tmp_path)
    files.save_model(writing("first"), 1)
    with pytest.raises(RunFolderError, match="model cannot be written: no room"):
        files.save_model(writing("second", fails=True), 1)
    # As of a process that died while it wrote.
    (tmp_path / "model.new").mkdir()
    (tmp_path / "model.new" / ".tmp1234").touch()
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["first"]
    files.save_model(writing("third"), 1)
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["third"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.fixture
def finished(tmp_path):
    made = RunFolder(tmp_path)
    (tmp_path / "config.yaml").write_text("config: {}\n")
    made.add_results([{"value": 1}])
    made.finish("# done\n", {"seconds": 1})
    return made


def test_every_file_has_the_hash_that_sha256sum_computes(finished):
    checked = subprocess.run(["sha256sum", "--check", SUMS], cwd=finished.path, capture_output=True, text=True)
    names = ["config.yaml", "facts.json", "results.jsonl", "report.md"]
    assert checked.stdout.splitlines() == [f"{name}: OK" for name in names]


@pytest.mark.parametrize("name", ["config.yaml", "facts.json", "results.jsonl", "report.md"])
def test_a_changed_file_is_refused_until_the_hashes_are_deleted(finished, name):
    finished.require_unchanged()
    (finished.path / name).write_text("changed\n")
    with pytest.raises(RunFolderError, match=rf"{name}: checksum mismatch"):
        finished.require_unchanged()
    (finished.path / SUMS).unlink()
    finished.require_unchanged()
