"""The command line as a user runs it, on the embedded benchmark."""

import json
import shlex

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from helpers.commands import metasearch
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import read_rows

TINY = "--encoder=tiny"
QUICK = [
    TINY,
    *(f"--set=budget.{key}" for key in ("meta_train=4", "meta_valid=4", "eval_every=4")),
    *("--set=episodes.k=2", "--set=episodes.q=2", "--set=options.inner_steps=1"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    result = metasearch("train", "--mode", "mono-bi-multi", *QUICK, "-o", folder)
    return folder, result


def test_train_writes_the_files_of_a_run_and_ends_with_the_table(trained):
    folder, result = trained
    names = {path.name for path in folder.iterdir()}
    files = ("config.yaml", "log.jsonl", "results.jsonl", "queries", "facts.json", "SHA256SUMS", "report.md", "model")
    assert names == {*files, ".lock"}
    report = (folder / "report.md").read_text()
    assert result.stdout == f"{report}\nrun: {folder}\n"
    assert "# maml-align on demo" in report
    assert all(f"| {learner}" in report for learner in ("zero-shot ", "maml-align"))


def test_results_carry_versions_seed_and_data_fingerprint(trained):
    rows = read_rows(trained[0] / "results.jsonl")
    assert {(row["learner"], row["split"]) for row in rows} == {
        (learner, split) for learner in ("zero-shot", "maml-align") for split in ("dev", "test")
    }
    assert {row["measure"] for row in rows} == {"map@20", "map"}
    assert {row["language"] for row in rows} == {"ar", "de", "el", "hi", "ru", "th", "tr", "mean"}
    assert all(row["versions"]["torch"] == torch.__version__ and row["seed"] == 0 for row in rows)
    assert len({row["data"] for row in rows}) == 1


def test_facts_have_the_mean_share_of_the_distillation_term(trained):
    steps = [event for event in RunFolder(trained[0]).events() if "kd_share" in event]
    mean = sum(0.5 * event["kd"] / event["task"] for event in steps) / len(steps)
    assert json.loads((trained[0] / "facts.json").read_text())["kd_share"] == pytest.approx(mean)


def test_plain_sentence_transformers_loads_the_model_and_scores_the_same(trained):
    folder, _ = trained
    texts = ["Πόσες χορδές έχει το βιολί;", "นาฬิกา", "hello", "مرحبا بالعالم"]
    plain = SentenceTransformer(str(folder / "model"), device="cpu").encode(texts)
    from metasearch.encoders.load import load_encoder

    np.testing.assert_allclose(plain, load_encoder(str(folder / "model")).encode(texts, "candidate"), atol=1e-6)
    scores = json.loads(metasearch("evaluate", "--encoder", folder / "model", "--json").stdout)["results"]
    rows = read_rows(folder / "results.jsonl")
    stored = {
        (row["measure"], row["language"]): row["value"]
        for row in rows
        if (row["learner"], row["split"], row["pool"]) == ("maml-align", "test", "multilingual")
    }
    assert {(row["measure"], row["language"]): pytest.approx(row["value"], abs=1e-9) for row in scores} == stored


def test_json_prints_one_object_and_nothing_else(tmp_path):
    args = ["train", "--task", "demo-sts", "--mode", "mono-bi", *QUICK, "-o", tmp_path / "run", "--json"]
    found = json.loads(metasearch(*args).stdout)
    assert found["run"] == str(tmp_path / "run")
    assert {row["measure"] for row in found["results"]} == {"pearson", "spearman"}
    assert {row["learner"] for row in found["results"]} == {"zero-shot", "maml"}


@pytest.mark.slow
def test_demo_sets_the_learners_side_by_side(tmp_path):
    result = metasearch("demo", TINY, "--max-steps", 1, "-o", tmp_path / "demo")
    lines = result.stdout.splitlines()
    table = lines[2 : lines.index("", 2)]
    learners = ["zero-shot", "fine-tune", "maml", "maml-align"]
    assert [line.split()[1] for line in (table[0], *table[2:])] == ["map@20", *learners]
    *report, _, run, said, index, search = lines
    assert (run, said) == (f"run: {tmp_path / 'demo'}", "index and search the articles with the last encoder:")
    assert (tmp_path / "demo" / "report.md").read_text() == "\n".join(report) + "\n"
    metasearch(*shlex.split(index)[1:])
    found = json.loads(metasearch(*shlex.split(search)[1:], "--json").stdout)["hits"]
    assert {hit["language"] for hit in found} <= set(CODES)
    assert len(found) == 10


def test_evaluate_prints_the_language_matrix(tmp_path):
    out = tmp_path / "scores.jsonl"
    result = metasearch("evaluate", TINY, "--pool", "bilingual", "--pool", "monolingual", "--split", "dev", "-o", out)
    heads = [line for line in result.stdout.splitlines() if "question \\ candidates" in line]
    assert [[cell.strip() for cell in head.split("|")[2:-1]] for head in heads] == [CODES, CODES]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    inside = [row["value"] for row in rows if row["language"] == row["candidates"] and row["measure"] == "map@20"]
    across = [row["value"] for row in rows if row["pool"] == "bilingual" and row["measure"] == "map@20"][:-1]
    assert (len(inside), len(across)) == (7, 7 * 6)
    means = next(line for line in result.stdout.splitlines() if line.startswith("| map@20 |"))
    assert [float(cell) for cell in means.split("|")[2:-1]] == [
        pytest.approx(100 * sum(values) / len(values), abs=0.005) for values in (across, inside)
    ]
    pairs = {(row["language"], row["candidates"]) for row in rows if row["language"] != "mean"}
    assert pairs == {(asked, found) for asked in CODES for found in CODES}


CODES = ["ar", "de", "el", "hi", "ru", "th", "tr"]


def test_show_prints_the_arrangement_and_an_episode_with_each_script_intact():
    shown = metasearch("show", "demo", "--mode", "mono-bi-multi").stdout
    assert "meta-train: el_el -> el_ar -> el_{ar,el,hi} | hi_hi -> hi_de -> hi_{ar,de,hi}" in shown
    blocks = [line.split()[:2] for line in shown.splitlines() if line[:2] in ("X ", "Y ", "Z ")]
    assert blocks == [["X", "el_el"], ["Y", "el_ar"], ["Z", "el_{ar,el,hi}"]]
    for first, last in (("α", "ω"), ("ا", "ي"), ("क", "ह")):
        assert any(first <= character <= last for character in shown)
