"""Each script runs once at its smallest, keeps its rows, and does nothing twice. No time is asserted."""

import ast
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import benchmarks
from benchmarks.common.rows import read_rows
from benchmarks.paper import main_table, small_studies
from benchmarks.speed import checkpointing, gpu
from metasearch.config.library import Library
from metasearch.data.benchmark import load_benchmark


@pytest.fixture(autouse=True)
def _without_published_data(monkeypatch):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)


def invoke(script, *words):
    result = CliRunner().invoke(script.main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_no_script_imports_a_private_name_of_metasearch():
    """Folders, modules and names; those of Python itself, such as `__version__`, are public."""
    private = re.compile(r"^_(?!_)")
    for path in Path(benchmarks.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("metasearch"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if private.match(name)], f"{path}:{node.lineno}"


QUICK = ("budget.meta_train=2", "budget.meta_valid=2", "budget.meta_batch=1", "budget.epochs=1", "episodes.k=2")


@pytest.mark.slow
def test_points_of_a_small_study_are_trained_once_scored_on_dev_alone_and_listed_best_first(tmp_path, monkeypatch):
    from metasearch.pipelines import factory

    path, scored, evaluate = tmp_path / "small.jsonl", [], factory.evaluate
    monkeypatch.setattr(
        factory, "evaluate", lambda e, data, *m, **how: scored.append(data) or evaluate(e, data, *m, **how)
    )
    words = ["--task", "demo", "--encoder", "tiny", "--learner", "fine-tune:mono-mono", "--axis", "outer.lr=1e-5,1e-3"]
    words += [word for each in QUICK for word in ("--set", each)]
    words += ["--max-steps", "4", "--every", "2", "--results", path]
    said = invoke(small_studies, *words)
    rows = read_rows(path)
    assert [row["changes"] for row in rows] == [[], ["outer.lr=1e-5"], ["outer.lr=1e-3"]]
    for row in rows:
        assert [step for step, _ in row["curve"]] == [0, 2, 4]
        assert row["best"] == max(score for step, score in row["curve"] if step)
    dev = load_benchmark("demo").split.dev
    assert {frozenset(data.groups) for data in scored} == {frozenset(dev.groups)}
    ranked = [", ".join(row["changes"]) or "none" for row in sorted(rows, key=lambda row: -row["best"])]
    assert [line.split("|")[3].strip() for line in said.splitlines() if line.startswith("| fine-tune")] == ranked
    assert "3 points, 3 of them done" in invoke(small_studies, *words)
    assert read_rows(path) == rows


def test_a_neutral_study_trains_each_learner_through_the_map_and_has_the_map_alone_as_an_arm(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(main_table, "metasearch", lambda *words: called.append(words))
    monkeypatch.setattr(main_table.ms, "read_study", lambda _: sys.exit(0))
    words = ["--task", "stsb-mt-translated", "--neutral", "-o", str(tmp_path), "--", "--trim-vocab", "task"]
    assert CliRunner().invoke(main_table.main, words).exit_code == 0
    (asked,) = called
    learners = asked[asked.index("--learner") + 1]
    assert learners == "zero-shot,neutral,fine-tune:mono-mono,maml:mono-mono,maml-align:mono-bi-multi"
    through = {asked[i + 1] for i, word in enumerate(asked) if word == "--set"}
    assert through == {f"{learner}:neutralise.when=before" for learner in ("fine-tune", "maml", "maml-align")}
    assert asked[-4:-2] == ("--trim-vocab", "task")


@pytest.mark.slow
def test_languages_of_answers_are_measured_in_four_ways_and_kept_once(tmp_path, monkeypatch):
    from benchmarks.paper import answers

    monkeypatch.setattr(answers, "ROWS", tmp_path / "answers.jsonl")
    words = ["--task", "demo", "--encoder", "tiny", "--data", Library().path("task", "demo").parent]
    said = [invoke(answers, *words) for _ in range(2)]
    rows = read_rows(tmp_path / "answers.jsonl")
    assert [row["way"] for row in rows] == ["none", "balanced", "neutral", "neutral + balanced"]
    assert said[0].endswith(said[1])
    kinds = ("relevant_own", "relevant_other", "irrelevant_own", "irrelevant_other")
    assert [sum(row[kind] for kind in kinds) for row in rows] == pytest.approx([1.0] * 4)


@pytest.mark.exhaustive
def test_layers_computed_again_have_the_same_bits(tmp_path):
    invoke(checkpointing, "--scale=small", "--rounds=1", "--shape=mini", "-o", tmp_path / "rows.jsonl")
    rows = {row["way"]: row for row in read_rows(tmp_path / "rows.jsonl")}
    assert list(rows) == list(checkpointing.WAYS)
    assert rows["checkpointing"]["gradient_error"] == rows["fast"]["gradient_error"] == 0
    assert 0 < rows["bf16"]["gradient_error"] == rows["bf16 checkpointing"]["gradient_error"] < 0.1
    assert rows["texts"]["gradient_error"] < 1e-5
    assert rows["fast"]["times"] == rows["fast"]["cpu"] == 1


@pytest.mark.slow
def test_on_a_gpu_there_is_a_row_for_each_way_of_each_case(tmp_path):
    words = ["--scale=small", "--device=cpu", "--encoder=tiny", "--rounds=1", "-o", tmp_path / "rows.jsonl"]
    shown = invoke(gpu, *words)
    rows = read_rows(tmp_path / "rows.jsonl")
    assert [(row["case"], row["way"]) for row in rows] == [
        (case, way) for case, ways in gpu.CASES.items() for way in ways
    ]
    assert all(row["way"] in shown and row["seconds"] > 0 for row in rows)
