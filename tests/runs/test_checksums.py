"""`SHA256SUMS`: the files of a finished run are read only if they are those that it wrote."""

import subprocess

import pytest

from metasearch.errors import RunFolderError
from metasearch.runs.folder import SUMS, RunFolder


@pytest.fixture
def files(tmp_path):
    made = RunFolder(tmp_path)
    (tmp_path / "config.yaml").write_text("config: {}\n")
    made.add_results([{"value": 1}])
    made.finish("# done\n", {"seconds": 1})
    return made


def test_every_file_has_the_hash_that_sha256sum_computes(files):
    checked = subprocess.run(["sha256sum", "--check", SUMS], cwd=files.path, capture_output=True, text=True)
    names = ["config.yaml", "facts.json", "results.jsonl", "report.md"]
    assert checked.stdout.splitlines() == [f"{name}: OK" for name in names]


@pytest.mark.parametrize("name", ["config.yaml", "facts.json", "results.jsonl", "report.md"])
def test_a_changed_file_is_refused_until_the_hashes_are_deleted(files, name):
    files.require_unchanged()
    (files.path / name).write_text("changed\n")
    with pytest.raises(RunFolderError, match=rf"{name}: checksum mismatch"):
        files.require_unchanged()
    (files.path / SUMS).unlink()
    files.require_unchanged()
