"""The benchmarks of the paper's tables: their figures, and ours beside them."""

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.studies import Made, write_study
from metasearch.spec.library import Library, choose_recipe
from metasearch.spec.task import applies
from metasearch.study.read import read_study

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _beside(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def paper():
    return importlib.import_module("_paper")


@pytest.fixture
def shared():
    return importlib.import_module("_study")


@pytest.mark.parametrize(
    ("task", "arm", "mean"),
    [
        ("lareqa", ("zero-shot", None), 57.0),
        ("lareqa", ("fine-tune", "mono-mono"), 47.0),
        ("lareqa", ("maml", "trans"), 57.2),
        ("lareqa", ("maml-align", "mono-bi-multi"), 57.6),
        ("stsb", ("zero-shot", None), 81.4),
        ("stsb", ("fine-tune", "mono-bi"), 79.9),
        ("stsb", ("maml-align", "mono-bi-multi"), 82.4),
    ],
)
def test_rows_of_tables_7_and_8_have_the_means_of_table_1(paper, task, arm, mean):
    languages, figures = paper.TABLE[task]
    assert len(figures[arm]) == len(languages)
    assert sum(figures[arm]) / len(languages) == pytest.approx(mean, abs=0.05)


def test_every_row_can_be_run(paper):
    for task in ("lareqa", "stsb"):
        for learner, mode in {*paper.ALL_ARMS[task], *(arm for arm in paper.TABLE[task][1] if arm[1])}:
            recipe = choose_recipe(mode, paper.ENCODER, learner, None)
            assert recipe.learner == learner
            assert Library().mode(mode).links in (2, 3)


@pytest.mark.parametrize("task", ["lareqa", "lareqa-sentences", "stsb", "demo", "demo-sts"])
def test_all_arms_are_those_of_table_1_and_more_and_each_mode_fits_the_task(paper, task):
    declared = Library().task(task)
    assert set(paper.MAIN_ARMS[task]) < set(paper.ALL_ARMS[task])
    assert len(set(paper.ALL_ARMS[task])) == len(paper.ALL_ARMS[task])
    assert all(applies(declared, Library().mode(mode)) for _, mode in paper.ALL_ARMS[task])


def test_maml_is_run_in_every_mode_of_two_links_that_the_paper_has(paper):
    modes = {mode for learner, mode in paper.ALL_ARMS["lareqa"] if learner == "maml"}
    assert modes == {mode.mode for mode in Library().modes() if mode.links == 2}


def test_ours_stand_beside_the_papers_and_another_encoder_is_said(tmp_path, paper, shared):
    arms = {"zero-shot": 0.5, "fine-tune-mono-mono": Made(1.0, learner="fine-tune", mode="mono-mono")}
    write_study(tmp_path / "s", arms, folds=(0, 1), task="lareqa", languages=paper.LAREQA_LANGUAGES)
    study = read_study([tmp_path / "s"])
    text = shared.beside_the_paper(study, "lareqa", "tiny", [("fine-tune", "mono-mono")])
    by_fold = [scored.values("map@20", "multilingual")["ar", "all"] for scored in study.of(study.baseline)]
    cells = [line.split("|") for line in text.splitlines() if "zero-shot" in line]
    assert cells[0][4].strip() == f"{100 * sum(by_fold) / 2:.1f}"
    assert "| 57.0 |" in text  # the paper's zero-shot
    assert "| 47.0 |" in text  # and its fine-tuning
    assert "Folds 0, 1 of 5" in text
    assert "another one than the paper's" in text


def test_the_papers_own_encoder_is_not_called_another_one(tmp_path, paper, shared):
    write_study(tmp_path / "s", {"zero-shot": 0.5}, task="lareqa", languages=paper.LAREQA_LANGUAGES)
    assert "another one" not in shared.beside_the_paper(read_study([tmp_path / "s"]), "lareqa", paper.ENCODER, [])


def test_what_sentences_without_paragraphs_differ_in_is_said(tmp_path, paper, shared):
    write_study(tmp_path / "s", {"zero-shot": 0.5}, task="lareqa-sentences", languages=paper.LAREQA_LANGUAGES)
    text = shared.beside_the_paper(read_study([tmp_path / "s"]), "lareqa-sentences", "mini", [])
    assert "| 57.0 |" in text  # the paper's zero-shot, of lareqa
    assert "The paper's candidates are sentences with their paragraphs, ours without." in text


@pytest.mark.parametrize("name", ["main_table", "transfer_modes"])
def test_a_script_that_runs_a_study_says_how_it_is_used(name):
    result = CliRunner().invoke(importlib.import_module(name).main, ["--help"])
    assert result.exit_code == 0
    for flag in ("--encoder", "--folds", "--seeds", "--max-steps", "--jobs"):
        assert flag in result.output


def test_a_study_of_the_tables_is_that_of_crossval_with_each_learner_in_its_mode(tmp_path, paper, shared, monkeypatch):
    asked = []
    monkeypatch.setattr(shared, "crossval", lambda config, *_: asked.append(config))
    arms = [("fine-tune", "mono-mono"), ("maml", "trans"), ("maml", "mixt")]
    changed = ("outer.lr=1e-4", "maml:outer.lr=1e-3", "maml:budget.meta_train=8")
    shared.run("demo", arms, "tiny", None, "0,2", "1,2", 4, changed, 1, tmp_path / "s")
    (config,) = asked
    assert [(arm.recipe.learner, arm.mode) for arm in config.trained] == arms
    assert [arm.recipe.recipe for arm in config.trained] == ["fine-tune-tiny", "maml-tiny", "maml-tiny"]
    assert [arm.recipe.outer.lr for arm in config.trained] == [1e-4, 1e-3, 1e-3]
    assert (config.encoder, config.folds, config.seeds, config.max_steps) == ("tiny", (0, 2), (1, 2), 4)
