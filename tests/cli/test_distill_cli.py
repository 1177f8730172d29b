"""`metasearch distill` as a user runs it: four stages from flags to the report, and what bad input is answered with."""

import json

import pytest

from helpers.commands import metasearch
from helpers.declarations import write_variant
from helpers.parallel import DEV, FOLDERS, PAIRS, STAGES, distill, events, flags, results, save_assistant, write_corpus
from metasearch.algorithms.distill import Distill
from metasearch.config.distill_run import DistillConfig
from metasearch.evaluation.study.read import read_study
from metasearch.runs.folder import RunFolder

pytestmark = pytest.mark.slow  # a model is trained


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus, an assistant and a task."""
    folder = tmp_path_factory.mktemp("distill")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    arrangements = {"mono -> mono": ["de_de -> el_el"]}
    write_variant(folder, "demo", "few", languages=["de", "el"], arrangements=arrangements)
    return folder


@pytest.fixture(scope="module")
def whole(place):
    """The four stages, evaluated on two tasks."""
    tasks = ["--evaluate=few", "--evaluate=demo-sts", f"--include={place}"]
    return place / "whole", distill(*flags(place, *tasks, steps=2), "-o", place / "whole")


def names(folder):
    return {path.name for path in folder.iterdir()}


def table(report, head):
    """Return the first cell of each row of the table that begins with a head."""
    lines = report.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = lines[start + 2 : lines.index("", start)] if "" in lines[start:] else lines[start + 2 :]
    return {cells[0]: cells[1:] for cells in ([c.strip() for c in row.split("|")[1:-1]] for row in rows)}


def test_a_run_has_a_folder_for_each_stage_and_the_model_of_the_last(whole):
    folder, result = whole
    written = ("config.yaml", "results.jsonl", "queries", "facts.json", "SHA256SUMS", "report.md", "model", "targets")
    assert names(folder) == {*written, ".lock", *FOLDERS}
    labels = ["assistant, before", "1 assistant", "2 embedding", "3 student", "4 contrast"]
    assert names(folder / "queries") == {f"{task}.{name}.test.npz" for task in ("few", "demo-sts") for name in labels}
    for stage in FOLDERS:
        assert names(folder / stage) == {"data.txt", "log.jsonl", "SHA256SUMS", "report.md", "model"}
    assert result.stdout == f"{(folder / 'report.md').read_text()}\nrun: {folder}\n"


def test_the_report_has_the_scores_on_each_task_and_the_dev_scores_of_every_stage_from_its_log(whole):
    folder, _ = whole
    report = (folder / "report.md").read_text()
    for head in ("map@20 (test)", "map (test)", "pearson (test)", "spearman (test)"):
        stages = [name.replace("-", " ") for name in FOLDERS]
        assert list(table(report, head)) == ["assistant, before", *stages]
    rows = table(report, "stage ")
    assert [row[:3] for row in rows.values()] == [
        ["assistant", "teacher", "accuracy"],
        ["student", "assistant", "cosine"],
        ["student", "assistant", "accuracy"],
        ["student", "teacher", "accuracy"],
    ]
    for stage, row in zip(FOLDERS, rows.values(), strict=True):
        before, after = (event["dev"] for event in events(folder / stage) if "dev" in event)
        assert row[3:] == [f"{100 * before:.2f}", f"{100 * after:.2f}", "2 of 2"]


def test_a_run_is_read_back_stage_by_stage_with_what_ranked_where(whole):
    found = read_study([whole[0]], task="few")
    assert [arm.label for arm in found.arms] == ["assistant, before", *(name.replace("-", " ") for name in FOLDERS)]
    for scored in found.scored:
        for (language, inside), value in scored.values("map", "multilingual").items():
            values = scored.questions.columns["map", "multilingual", language, inside]
            assert value == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert scored.questions.ranking is not None
    assert found.runs[0].facts["device"] == "cpu"


def test_the_configuration_that_is_stored_spells_out_all_options_of_the_learners(whole):
    stored = RunFolder(whole[0]).stored(DistillConfig).config.recipe.stages
    expected = [
        Distill.Options(output="pooled", target="source"),
        Distill.Options(output="embedding", target="own"),
        Distill.Options(output="pooled", target="own"),
        Distill.Options(output="pooled", target="source", contrast="soft", contrast_weight=1, temperature=5 / 100),
    ]
    for name, options in zip(STAGES, expected, strict=True):
        assert set(stored[name].options) == set(Distill.Options.model_fields)
        assert Distill.Options.model_validate(stored[name].options) == options


def test_a_stage_trains_on_all_pairs_but_those_of_sources_in_dev(whole):
    report = (whole[0] / FOLDERS[0] / "report.md").read_text()
    assert f"{2 * PAIRS - 2 * DEV} pairs of en with de, tr from 2 files, {2 * DEV} for dev" in report


def test_the_scores_of_a_stage_are_those_that_evaluate_gives_its_model(whole, place):
    rows, task = results(whole[0]), ("--task", "few", "--include", place)
    for label, model in (("assistant, before", place / "assistant"), ("4 contrast", whole[0] / "model")):
        said = metasearch("evaluate", "--encoder", model, *task, "--json")
        found = {(row["measure"], row["language"]): row["value"] for row in json.loads(said.stdout)["results"]}
        own = [row for row in rows if row["learner"] == label and row["task"] == "few"]
        stored = [row for row in own if row["pool"] == "multilingual"]
        assert {(row["measure"], row["language"]): pytest.approx(row["value"], abs=1e-9) for row in stored} == found
