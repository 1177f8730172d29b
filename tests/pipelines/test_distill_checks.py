"""What a distillation checks before its first step, and what it leaves behind where something is wrong."""

import re

import pytest

from helpers.declarations import write_variant
from helpers.parallel import (
    FOLDERS,
    PAIRS,
    distill,
    events,
    flags,
    results,
    save_assistant,
    small,
    weights,
    write_corpus,
)
from metasearch.config.library import Library
from metasearch.errors import DataError
from metasearch.training.trainer import Trainer


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus and an assistant, which takes 64 tokens and was published with 20."""
    folder = tmp_path_factory.mktemp("checks")
    write_corpus(folder / "corpus", names=("en-de",))
    save_assistant(folder / "assistant", longest=20)
    return folder


def ema(place, *more):
    """Return flags of `metasearch distill` for recipe `ema`."""
    given = ["--recipe=ema", f"--student={place / 'assistant'}", f"--corpus={place / 'corpus'}"]
    return [*given, *small("align", corpus__max_tokens=60), *more]


# What no stage could begin with.


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (["--set=stages.embedding.corpus.only=[TED2020]"], 3, "TED2020"),
        (["--set=stages.embedding.corpus.max_lines=5"], 3,
         r"stage 'embedding': dev=5: de has 5 pairs(.|\n)*\(--set stages.embedding.corpus.dev=N\)"),
        (["--set=stages.embedding.corpus.languages=[tr]"], 3, "tr"),
        (["--evaluate=demp"], 2, r"unknown task 'demp'\. Did you mean 'demo'\?"),
        (["--evaluate=unmeasured"], 2, "pearsen"),
        (["--evaluate=sts17", "--data=EMPTY"], 3, "sts17"),
        (["--student=nowhere/at/all"], 6, "encoder 'nowhere/at/all': no such folder"),
        (["--set=student.recurrent=3"], 2, "recurrent 3: 4 layers are no multiple of it"),
    ],
)  # fmt: skip
def test_what_a_later_stage_or_its_scores_lack_ends_the_run_before_the_first_one(place, tmp_path, given, code, says):
    write_variant(tmp_path, "demo-sts", "unmeasured", measures=["pearsen"], monitor="pearsen")
    given = [each.replace("EMPTY", str(tmp_path)) for each in given]
    run = flags(place, "--stages=1-2", f"--include={tmp_path}", f"--teacher-cache={tmp_path / 'targets'}", *given)
    assert re.search(says, distill(*run, "-o", tmp_path / "run", code=code).stderr)
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "targets").exists()


# What is found wrong once the folder is made.


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (["stages.align.corpus.max_tokens=1"], 3, "max_tokens=1: no pair is that short"),
        ([f"stages.align.corpus.dev={PAIRS}"], 3, f"dev={PAIRS}: de has {PAIRS} pairs; the dev set leaves no other"),
    ],
)
def test_a_run_that_fails_before_its_first_step_leaves_no_folder(place, tmp_path, change, code, says):
    sets = [f"--set={value}" for value in change]
    assert says in distill(*ema(place, *sets), "--max-steps=2", "-o", tmp_path / "run", code=code).stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_corrected_command_has_the_folder_and_its_only_step_the_whole_rate(place, tmp_path):
    """Of a text of 64 tokens it is known that it is longer than 63, where the encoder takes 64."""
    run = tmp_path / "run"
    run.mkdir()
    limit = "--set=stages.align.corpus.max_tokens="
    said = distill(*ema(place, f"{limit}64"), "--max-steps=1", "-o", run, code=2).stderr
    assert "reads 64 tokens, so longer texts cannot be detected" in said
    assert list(run.iterdir()) == []
    distill(*ema(place, f"{limit}63"), "--max-steps=1", "-o", run)
    (step,) = [event for event in events(run / "1-align") if "loss" in event]
    assert step["lr"] == Library().distillation("ema").stages["align"].outer.lr
    assert weights(run) != (place / "assistant/model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_run_that_fails_after_a_stage_keeps_it(place, tmp_path, monkeypatch):
    fit = Trainer.fit

    def fails(self, resume):
        if self.schedule.phases[0].name == "embedding":
            raise DataError("something of the data is wrong")
        return fit(self, resume)

    monkeypatch.setattr(Trainer, "fit", fails)
    given = flags(place, "--stages=1-2", steps=1)
    assert "something of the data is wrong" in distill(*given, "-o", tmp_path / "run", code=3).stderr
    assert weights(tmp_path / "run" / FOLDERS[0])
    assert [row["learner"] for row in results(tmp_path / "run")] == ["1 assistant"]
