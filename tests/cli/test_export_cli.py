"""`metasearch export`: what each form writes, and the scores that show what is lost."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

from helpers.backbones import TEXTS
from helpers.commands import metasearch
from helpers.onnx_extra import needs_onnx
from metasearch.config.roles import MaxLength
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.builtin import tiny
from metasearch.encoders.prompts import replace_prompts


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_scores_before_and_after_are_printed(tmp_path):
    flags = ["--sentence-transformers", "--dimensions", 24, "--task", "demo-sts"]
    printed = metasearch("export", "tiny", *flags, "-o", tmp_path / "short").stdout.splitlines()
    lines = [cells(line) for line in printed if line.startswith("|")]
    start = next(i for i, line in enumerate(lines) if line[0].startswith("spearman"))
    assert [line[0] for line in lines[start + 2 : start + 4]] == ["before", "plain"]
    assert printed[-1] == f"model: {tmp_path / 'short'}"


def test_a_standard_model_is_copied_unchanged(tmp_path):
    encoder = tiny.build()
    encoder.write(tmp_path / "words")
    printed = metasearch("export", tmp_path / "words", "--sentence-transformers", "--json", "-o", tmp_path / "again")
    assert "is already a standard model; copied unchanged" in printed.stderr
    facts = json.loads(printed.stdout)
    assert facts["bytes"] == sum(path.stat().st_size for path in (tmp_path / "again").rglob("*") if path.is_file())
    assert {key: facts[key] for key in ("model", "dimension", "difference", "results")} == {
        "model": str(tmp_path / "again"), "dimension": 128, "difference": None, "results": [],
    }  # fmt: skip
    found = SentenceTransformer(str(tmp_path / "again"), device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(found, encoder.model.encode(TEXTS))


def test_a_model_with_a_query_adapter_is_copied_with_it_and_other_forms_refuse_it(tmp_path):
    encoder = AdaptedEncoder(tiny.build(), MatrixAdapter(128), pairs=True)
    with torch.no_grad():
        encoder.adapter.delta += torch.diag(torch.linspace(0, 9, 128))
    encoder.save(tmp_path / "model")
    flags = ["--sentence-transformers", "--task", "demo-sts", "--json", "-o", tmp_path / "again"]
    rows = json.loads(metasearch("export", tmp_path / "model", *flags).stdout)["results"]
    before, after = ([row["value"] for row in rows if row["learner"] == name] for name in ("before", "plain"))
    assert before == pytest.approx(after)
    found = SentenceTransformer(str(tmp_path / "again"), device="cpu").encode_query(TEXTS)
    np.testing.assert_allclose(found, encoder.encode(TEXTS, "question"), rtol=0, atol=1e-6)
    for flag in (["--int8"], ["--sentence-transformers", "--dimensions", 8]):
        said = metasearch("export", tmp_path / "model", *flag, "-o", tmp_path / "no", code=6).stderr
        assert "has a query adapter, which export with --onnx, --int8 or --dimensions does not support" in said


FORMS = {
    "dimensions": (["--sentence-transformers", "--dimensions", 24], "sentence-transformers"),
    "onnx": (["--onnx"], "onnx"),
    "int8": (["--int8"], "metasearch"),
}
"""Form → its flags, and the library that loads it; what imports metasearch comes last."""
RUN_ALL = """
import os, sys
for folder in sys.argv[1:]:
    os.chdir(folder)
    assert "metasearch" not in sys.modules, folder
    exec(open("example.py").read(), {})
"""


@needs_onnx
@pytest.mark.slow
def test_every_form_has_a_card_whose_example_runs(tmp_path, monkeypatch):
    for form, (flags, library) in FORMS.items():
        folder = tmp_path / form
        metasearch("export", "tiny", *flags, "-o", folder)
        card = ModelCard.load(folder / "README.md")
        assert card.data.library_name == library
        assert ("base `tiny`: apache-2.0" in card.text, str(tmp_path) in card.text) == (True, False)
        (example,) = re.findall(r"^```python\n(.*?)^```$", card.text, flags=re.S | re.M)
        (folder / "example.py").write_text(example, encoding="utf-8")
    # One process, since torch takes seconds to import; each example but the last runs without metasearch.
    ran = subprocess.run([sys.executable, "-c", RUN_ALL, *(tmp_path / form for form in FORMS)], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


def test_the_card_states_prompts_and_lengths_of_the_exported_model(tmp_path):
    encoder = tiny.build(MaxLength(question=30, candidate=40, text=50))
    replace_prompts(encoder.model, {"question": "q: "})
    encoder.save(tmp_path / "model")
    metasearch("export", tmp_path / "model", "--sentence-transformers", "-o", tmp_path / "plain")
    lines = (tmp_path / "plain" / "README.md").read_text(encoding="utf-8").splitlines()
    for role, prompt, length in (("question", "q: ", "50"), ("candidate", "none", "50"), ("text", "none", "50")):
        (line,) = [cells(line) for line in lines if line.startswith(f"| {role} ")]
        assert (line[2].strip("`"), line[3]) == (prompt, length)


@needs_onnx
@pytest.mark.slow
def test_a_graph_has_its_scores_in_its_folder_and_evaluate_gives_the_same(tmp_path):
    folder = tmp_path / "graph"
    printed = metasearch("export", "tiny", "--onnx", "--task", "demo-sts", "-o", folder).stdout
    facts = json.loads((folder / "metasearch.json").read_text(encoding="utf-8"))

    def mean(rows):
        return [row for row in rows if (row["measure"], row["language"]) == ("pearson", "mean")]

    means = {row["learner"]: row["value"] for row in mean(facts["results"])}
    scores = (folder / "README.md").read_text(encoding="utf-8").split("## Scores\n\n")[1].split("## Data")[0]
    assert scores.split("\n\n")[2] in printed  # below the words on fold and seed, and the heading
    again, whole = (
        mean(json.loads(metasearch("evaluate", "--task", "demo-sts", "--encoder", each, "--json").stdout)["results"])[0]
        for each in (folder, "tiny")
    )
    assert (again["value"], whole["value"]) == (means["onnx"], means["before"])
    assert again["weights"] != whole["weights"]
