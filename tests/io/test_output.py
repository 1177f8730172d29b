"""What commands write is there whole or not at all, and mistakes in their flags are found at once."""

import pytest

from metasearch.errors import ConfigError, RunFolderError
from metasearch.io import output
from metasearch.io.output import claim, claim_file, whole


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


def test_what_another_call_is_writing_is_named_and_kept(tmp_path):
    target = tmp_path / "student"
    with whole(target) as folder:
        fill(folder)
        with pytest.raises(RunFolderError, match=r"partial exists: another process writes .* delete it if none runs"):
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
