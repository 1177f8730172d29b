"""`SHA256SUMS`: what a run wrote is read only as it was written, whenever it stopped."""

import subprocess

import pytest

from metasearch.errors import RunFolderError
from metasearch.runs import sums
from metasearch.runs.folder import RunFolder


@pytest.fixture
def files(tmp_path):
    made = RunFolder(tmp_path)
    made.add_results([{"value": 1}])
    return made


def test_a_finished_run_has_the_hash_of_every_file_as_sha256sum_reads_them(files):
    files.finish("# done\n", {"seconds": 1})
    checked = subprocess.run(["sha256sum", "--check", sums.SUMS], cwd=files.path, capture_output=True, text=True)
    assert checked.stdout.splitlines() == ["facts.json: OK", "results.jsonl: OK", "report.md: OK"]


def test_a_crash_before_or_after_the_scores_are_in_place_leaves_them_readable(files):
    sums.announce(files.path, '{"value": 2}\n')
    assert files.results() == [{"value": 1}]
    (files.path / "results.jsonl").write_text('{"value": 2}\n')
    assert files.results() == [{"value": 2}]


def test_a_score_that_was_changed_is_refused_and_read_again_without_hashes_as_in_earlier_releases(files):
    (files.path / "results.jsonl").write_text('{"value": 3}\n')
    for reading in (files.results, lambda: files.add_results([{"value": 4}])):
        with pytest.raises(RunFolderError, match=r"results\.jsonl: it was changed or damaged since the run wrote it"):
            reading()
    (files.path / sums.SUMS).unlink()
    assert files.results() == [{"value": 3}]
