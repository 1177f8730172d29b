"""What commands write is there whole or not at all, and mistakes in their flags are found at once."""

import json
import subprocess
import sys

import pytest

from metasearch.compress import output
from metasearch.compress.output import claim, claim_file, whole
from metasearch.errors import ConfigError, RunFolderError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(folder):
    """Write a file, and another one in a folder."""
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")


def write(target, stop=None):
    """Write a folder, and stop when its files are there."""
    with whole(target) as folder:
        fill(folder)
        if stop is not None:
            raise stop


def test_a_new_folder_is_not_there_before_it_is_whole(tmp_path):
    target = tmp_path / "new" / "student"
    with whole(target) as folder:
        fill(folder)
        assert not target.exists()
    assert names(target.parent) == ["student"]
    assert names(target) == ["1_Pooling", "modules.json"]
    assert names(target / "1_Pooling") == ["config.json"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("stop", "raised", "says"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
        (OSError(28, "No space left on device"), RunFolderError, "student cannot be written: No space left on device"),
        (Exception("I/O error: disk full"), RunFolderError, "student cannot be written: I/O error: disk full"),
        (ConfigError("wrong"), ConfigError, "^wrong$"),
    ],
)
def test_what_is_stopped_leaves_nothing_and_can_be_done_again(tmp_path, there, stop, raised, says):
    target = tmp_path / "student"
    if there:
        target.mkdir()
    with pytest.raises(raised, match=says):
        write(target, stop)
    assert names(tmp_path) == ["student"] * there
    assert not there or names(target) == []
    write(target)
    assert names(target) == ["1_Pooling", "modules.json"]


@pytest.mark.parametrize("there", [False, True])
def test_what_another_call_is_writing_is_named_and_kept(tmp_path, there):
    target = tmp_path / "student"
    if there:
        target.mkdir()
    with whole(target) as folder:
        fill(folder)
        with pytest.raises(RunFolderError, match=r"partial exists: another call writes .* delete it if none runs"):
            claim(target)
    assert names(target) == ["1_Pooling", "modules.json"]


def test_a_place_that_cannot_be_written_is_found_before_work_begins(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match=r"x cannot be written: .*file is a file, not a folder"):
        claim(tmp_path / "file" / "x")
    with pytest.raises(RunFolderError, match=r"x\.csv cannot be written: .*file is a file, not a folder"):
        claim_file(tmp_path / "file" / "x.csv")
    monkeypatch.setattr(output.os, "access", lambda path, mode: path != tmp_path)
    for check in (claim, claim_file):
        with pytest.raises(RunFolderError, match=f"x cannot be written: no permission to write to {tmp_path}$"):
            check(tmp_path / "new" / "x")
    assert names(tmp_path) == ["file"]


MISTAKES = [
    (["compress", "tiny", "--bottleneck", "8"], 2, "say where the student goes with -o DIR"),
    (["compress", "tiny", "-o", "{}/new"], 2, "nothing to compress"),
    (["compress", "tiny", "--repeats", "2", "-o", "{}/new"], 2, "which layers?"),
    (["compress", "tiny", "--recurrent", "1", "--init", "random", "--sizes-only"], 2, "random is for a bottleneck"),
    (["compress", "tiny", "--bottleneck", "8", "-o", ""], 2, "-o is empty"),
    (["compress", "tiny", "--bottleneck", "8", "-o", "{}"], 5, "exists already"),
    (["compress", "tiny", "--trim-vocab", "{}/none.txt", "-o", "{}/new"], 3, "none.txt: no such file or folder"),
    (["compress", "tiny", "--bottleneck", "8", "--seed", "9" * 23, "-o", "{}/new"], 2, "--seed"),
    (["compress", "tiny", "--bottleneck", "8", "--seed", "-1", "-o", "{}/new"], 2, "--seed"),
    (["export", "tiny", "-o", "{}/new"], 2, "--sentence-transformers"),
    (["export", "tiny", "--sentence-transformers", "-o", "{}"], 5, "exists already"),
    (["export", "tiny", "--sentence-transformers", "-o", ""], 2, "-o is empty"),
    (["tokenizer", "{}", "-o", "{}"], 5, "exists already"),
    (["tokenizer", "{}", "-o", ""], 2, "-o is empty"),
    (["tokenizer", "{}", "--seed", "9" * 23, "-o", "{}/new"], 2, "--seed"),
    (["tokenizer", "{}", "--size", str(2**31), "-o", "{}/new"], 2, "--size"),
    (["tokenizer", "{}", "--init", "random", "-o", "{}/new"], 2, "name the encoder with --encoder"),
    (["augment", "x-en.csv", "--encoder", "tiny", "--cross-encoder", "x", "-o", "{}/mine.txt"], 5, "exists already"),
    (["augment", "x-en.csv", "--encoder", "tiny", "--cross-encoder", "x", "-o", "{}/mine.txt/x"], 5, "is a file"),
    (["augment", "x-en.csv", "--encoder", "tiny", "--cross-encoder", "x", "-o", ""], 2, "-o is empty"),
]

PROGRAM = """
import json, sys
from click.testing import CliRunner
from metasearch.cli import main
results = [CliRunner().invoke(main, args) for args in json.loads(sys.argv[1])]
heavy = [name for name in ("torch", "transformers") if name in sys.modules]
print(json.dumps([heavy, [[result.exit_code, result.stderr] for result in results]]))
"""


def test_mistakes_in_flags_are_named_without_waiting_for_torch(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    commands = json.dumps([[part.format(tmp_path) for part in args] for args, _, _ in MISTAKES])
    done = subprocess.run([sys.executable, "-c", PROGRAM, commands], capture_output=True, text=True, check=True)
    heavy, results = json.loads(done.stdout)
    for (args, code, says), (reached, stderr) in zip(MISTAKES, results, strict=True):
        assert reached == code, (args, stderr)
        assert says in stderr, args
        assert "Traceback" not in stderr
    assert heavy == []
    assert names(tmp_path) == ["mine.txt"]
