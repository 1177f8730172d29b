"""Studies from the command to the table: what is taken over, resumed and refused.

Most run their cells in this process, as the processes of cells would; the last test begins real ones and kills them.
"""

import json
import signal

import pytest

from helpers import forks
from helpers.commands import metasearch
from helpers.crossval import FLAGS, STEPS, TUNED, ZERO, attempts, inline, run, scores
from helpers.forks import Fork
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.study.cell import last_error
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.runs.rows import read_rows


@pytest.fixture
def begun(monkeypatch):
    return inline(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    with pytest.MonkeyPatch.context() as patch:
        inline(patch)
        return folder, run(*FLAGS, "-o", folder)


def table(folder):
    return (folder / "report.md").read_text(encoding="utf-8").partition("\n")[2]


@pytest.mark.slow
def test_a_study_can_be_read_back_and_its_table_is_printed(whole):
    folder, result = whole
    study = read_study([folder])
    assert ([arm.label for arm in study.arms], study.folds, study.missing) == (["zero-shot", "fine-tune"], (0,), ())
    assert result.stdout == f"{(folder / 'report.md').read_text()}\nstudy: {folder}\n"
    assert {row["arm"] for row in scores(folder)} == {"zero-shot", "fine-tune"}


@pytest.mark.slow
def test_what_is_trained_takes_zero_shot_over_to_the_bit(whole):
    zero, tuned = (whole[0] / "cells" / name for name in (ZERO, TUNED))
    rows = [read_rows(at / "results.jsonl") for at in (zero, tuned)]
    same = ("split", "measure", "pool", "language", "value", "step", "seed", "fold", "data", "versions")
    taken = [row for row in rows[1] if row["learner"] == "zero-shot"]
    assert [[row[key] for key in same] for row in taken] == [[row[key] for key in same] for row in rows[0]]
    assert {row["mode"] for row in taken} == {"mono-bi"}
    file = "queries/demo-sts.zero-shot.test.npz"
    assert (zero / file).is_file()
    assert (tuned / file).is_file()


@pytest.mark.slow
def test_what_is_finished_is_never_done_again(whole, begun):
    before = (whole[0] / "cells" / TUNED / "report.md").stat().st_mtime_ns
    assert run(*FLAGS, "-o", whole[0]).stdout == whole[1].stdout
    shown = json.loads(metasearch("resume", whole[0], "--json").stdout)
    assert {row["arm"] for row in shown["results"]} == {"zero-shot", "fine-tune"}
    assert begun == []
    assert (whole[0] / "cells" / TUNED / "report.md").stat().st_mtime_ns == before


@pytest.mark.slow
def test_another_setting_is_refused_with_both_values(whole, begun):
    said = run(*FLAGS, "--max-steps=7", "-o", whole[0], code=2).output
    assert f"the study has max_steps '{STEPS}', not '7'" in said
    assert begun == []


@pytest.mark.slow
def test_other_data_or_versions_are_refused(whole, tmp_path, begun):
    study = tmp_path / "study"
    study.mkdir()
    text = (whole[0] / "study.yaml").read_text(encoding="utf-8")
    found = next(line for line in text.splitlines() if line.startswith("data_fingerprint"))
    (study / "study.yaml").write_text(text.replace(found, "data_fingerprint: other"), encoding="utf-8")
    assert "the data has changed since the study began (fingerprint other" in metasearch("resume", study, code=3).output
    torch = next(line for line in text.splitlines() if line.startswith("  torch"))
    (study / "study.yaml").write_text(text.replace(torch, "  torch: '1.0'"), encoding="utf-8")
    assert "the study began with torch 1.0, this is" in metasearch("resume", study, code=2).output
    assert begun == []


@pytest.mark.slow
def test_one_runner_at_a_time(whole):
    with StudyFolder(whole[0]).held():
        assert "another crossval is at work in" in metasearch("resume", whole[0], code=5).output


@pytest.mark.parametrize("left", [(".lock",), (".lock", "study.yaml.new")])
def test_what_a_runner_leaves_that_died_before_its_study_began_is_no_reason_to_refuse_the_folder(tmp_path, left):
    for name in left:
        (tmp_path / name).write_text("data_fing")
    with StudyFolder(tmp_path).held():
        assert not StudyFolder(tmp_path).begun


@pytest.mark.slow
def test_a_cell_whose_folder_was_half_made_is_begun_again(whole, tmp_path, begun):
    study = tmp_path / "study"
    (study / "cells" / ZERO).mkdir(parents=True)
    (study / "cells" / ZERO / "config.yaml").write_text("data_fingerprint: x\nconf", encoding="utf-8")
    config = StudyFolder(whole[0]).stored()
    alone = config.config.model_copy(update={"trained": ()})
    StudyFolder(study).store(config.model_copy(update={"config": alone, "cells": [ZERO]}))
    metasearch("resume", study)
    zero = [row for row in scores(whole[0]) if row["arm"] == "zero-shot"]
    assert [row for row in scores(study) if row["arm"] == "zero-shot"] == zero


@pytest.mark.slow
@pytest.mark.timeout(600)  # two processes import torch, on a machine that may be busy
def test_a_killed_runner_goes_on_with_the_same_command_and_does_nothing_twice(whole, tmp_path, monkeypatch):
    folder = tmp_path / "study"
    study, log = StudyFolder(folder), folder / "cells" / TUNED / "log.jsonl"
    runner = Fork(forks.metasearch("crossval", *FLAGS, "-o", folder))
    runner.wait_until(lambda: log.is_file() and '"step": 1,' in log.read_text())
    runner.send_signal(signal.SIGKILL)
    assert runner.finished()[0] == -signal.SIGKILL
    begun = inline(monkeypatch)
    assert (attempts(study, ZERO), attempts(study, TUNED)) == (1, 1)
    before = study.at(ZERO).joinpath("report.md").stat().st_mtime_ns
    run(*FLAGS, "-o", folder)  # waits until the process that the runner left has saved its checkpoint
    assert "; model and checkpoint are saved" in last_error(study.log(TUNED))
    assert begun == [TUNED]
    assert study.at(ZERO).joinpath("report.md").stat().st_mtime_ns == before
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["step"] for event in steps if "dev" not in event] == list(range(1, STEPS + 1))
    assert table(folder) == table(whole[0])
    assert scores(folder) == scores(whole[0])
