"""Cells of a study: those that fail, those that are computed once for all seeds, and how Ctrl-C ends them.

They run in this process, as the processes of cells would.
"""

import json
import re
import shutil

import pytest

from helpers.configs import nested
from helpers.crossval import FLAGS, ZERO, inline, run, scores, without
from metasearch.config.study import StudyConfig
from metasearch.encoders.load import load_encoder
from metasearch.errors import Interrupted
from metasearch.pipelines import factory, scorer
from metasearch.pipelines.study import runner
from metasearch.pipelines.study.launchers import JobEnd
from metasearch.pipelines.study.runner import begin as crossval


@pytest.fixture
def begun(monkeypatch):
    return inline(monkeypatch)


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        (["--encoder=minni"], 6, "unknown encoder 'minni'. Did you mean 'mini'?"),
        (["--trim-vocab=xx"], 2, "unknown language to trim to 'xx'. Known: "),
        (["--prompt=passage=x"], 2, "no role 'passage'. Known: document, query, text"),
    ],
)
def test_an_encoder_that_no_cell_could_load_is_refused_before_anything_is_written(tmp_path, begun, wrong, code, says):
    assert says in run(*FLAGS, *wrong, "-o", tmp_path / "study", code=code).stderr
    assert not (tmp_path / "study").exists()
    assert begun == []


def test_a_dry_run_lists_the_cells_and_makes_nothing(tmp_path):
    folder = tmp_path / "study"
    names = ["zero-shot/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"]
    wanted = [*FLAGS, "--learner", "zero-shot,fine-tune:mono-bi", "--folds", "1", "--seeds", "0", "-o", folder]
    assert run(*wanted, "--dry-run").stdout.splitlines() == [
        f"{names[0].ljust(31)}  score  to do",
        f"{names[1].ljust(31)}  train  to do",
        "2 of 2 runs to do",
    ]
    found = json.loads(run(*wanted, "--dry-run", "--json").stdout)["cells"]
    assert [(cell["name"], cell["kind"], cell["done"]) for cell in found] == [
        (names[0], "score", False),
        (names[1], "train", False),
    ]
    assert not folder.exists()


@pytest.mark.slow
def test_a_cell_that_fails_is_named_the_others_go_on_and_the_same_command_tries_it_again(tmp_path, begun):
    flags = [*without("--learner"), "--max-steps=2", "--learner=maml,fine-tune", "--set=maml:outer.lr=1e30"]
    flags += ["-o", tmp_path / "study"]
    bad, good = "maml-mono-bi/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"
    result = run(*flags, code=7)
    assert "1 of the study's runs failed" in result.stderr
    assert f"{bad}: exit code 4: the meta-" in result.stderr
    assert f"log: {tmp_path / 'study' / 'cells' / bad}.log" in result.stderr
    assert "fine-tune" in result.stdout
    assert f"run {bad} is not finished" in result.stdout
    assert begun == [ZERO, bad, good]
    run(*flags, code=7)
    assert begun == [ZERO, bad, good, bad]


@pytest.fixture
def evaluated(monkeypatch):
    """Return the parts of data that are evaluated."""
    found, evaluate = [], scorer.evaluate
    monkeypatch.setattr(scorer, "evaluate", lambda *args: found.append(args[1].fingerprint) or evaluate(*args))
    return found


def by_seed(folder):
    return [[row["value"] for row in scores(folder) if row["seed"] == seed] for seed in (4, 5)]


@pytest.mark.slow
def test_cells_with_the_same_weights_compute_zero_shot_once(tmp_path, begun, evaluated, monkeypatch):
    load = load_encoder

    def same_weights(ref, *args, **keys):
        encoder = load(ref, *args, **{**keys, "seed": 0})
        encoder.seeded = False
        return encoder

    monkeypatch.setattr(factory, "load_encoder", same_weights)
    run(*without("--seeds"), "--max-steps=1", "--seeds=4,5", "-o", tmp_path / "study")
    assert begun[:2] == ["zero-shot/fold-0-seed-4", "zero-shot/fold-0-seed-5"]
    # Dev and test: of zero-shot once, and of each of the two trained models.
    assert len(evaluated) == 2 + 2 * 2
    first, second = by_seed(tmp_path / "study")
    zero = len(first) // 2
    assert first[:zero] == second[:zero] != []


@pytest.mark.slow
def test_zero_shot_of_an_encoder_with_random_weights_is_computed_with_each_seed(tmp_path, begun, evaluated):
    run(*without("--learner", "--seeds"), "--learner=zero-shot", "--seeds=4,5", "-o", tmp_path / "study")
    first, second = by_seed(tmp_path / "study")
    assert first != second
    assert len(evaluated) == 2 * 2


@pytest.mark.slow
def test_damaged_zero_shot_scores_are_computed_again(tmp_path, begun, evaluated):
    flags = [*without("--learner"), "--learner=zero-shot", "-o", tmp_path / "study"]
    run(*flags)
    before = scores(tmp_path / "study")
    for path in (tmp_path / "study" / "scores").glob("*/rows.json"):
        path.write_text(path.read_text().replace("0.", "1."))
    shutil.rmtree(tmp_path / "study" / "cells")
    run(*flags)
    assert scores(tmp_path / "study") == before
    assert len(evaluated) == 2 * 2


class Busy:
    """A launcher whose cells run until they are stopped, or, where they are deaf, until they are stopped again.

    Ctrl-C is pressed `presses` times, each while it is asked for ended cells.
    """

    tick = 0.0
    deaf = False
    presses = 0
    heard: list[bool]

    def __init__(self, *place):
        self.active = {}

    def submit(self, names):
        self.active |= dict.fromkeys(names)
        return [*self.active]

    def collect(self):
        if Busy.presses:
            Busy.presses -= 1
            raise KeyboardInterrupt
        ended = {name: end for name, end in self.active.items() if end}
        self.active = {name: end for name, end in self.active.items() if not end}
        return ended

    def stop(self, again):
        self.heard.append(again)
        if again or not self.deaf:
            self.active = dict.fromkeys(self.active, JobEnd(143))


@pytest.mark.parametrize(("times", "heard"), [(1, [False]), (2, [False, True])])
def test_ctrl_c_stops_all_cells_and_again_stops_them_at_once(tmp_path, monkeypatch, caplog, times, heard):
    caplog.set_level("INFO", "metasearch")
    monkeypatch.setattr(runner, "open_launcher", Busy)
    monkeypatch.setattr(Busy, "heard", [], raising=False)
    monkeypatch.setattr(Busy, "deaf", times == 2)
    monkeypatch.setattr(Busy, "presses", times)
    config = nested(StudyConfig, task="demo-sts", encoder="tiny", folds=(0, 1, 2))
    with pytest.raises(Interrupted, match=r"stopped; progress is saved\. Continue with: metasearch resume"):
        crossval(config, tmp_path / "study", jobs=2)
    assert Busy.heard == heard
    assert len(re.findall(r"seed-0 stopped \(", caplog.text)) == 2


def test_ctrl_c_between_cells_that_are_made_ready_ends_though_none_was_begun(tmp_path, monkeypatch):
    made = []

    def prepare(study, cell, stored):
        made.append(cell.name)
        if len(made) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "prepare", prepare)
    monkeypatch.setattr(runner, "open_launcher", Busy)
    monkeypatch.setattr(Busy, "heard", [], raising=False)
    config = nested(StudyConfig, task="demo-sts", encoder="tiny", folds=(0, 1, 2))
    with pytest.raises(Interrupted, match="stopped; progress is saved"):
        crossval(config, tmp_path / "study", jobs=2)
    assert Busy.heard == []
