"""`metasearch tune`: from files of labels to an index, and what it refuses."""

import json

import pytest

from helpers.commands import metasearch
from helpers.files import write_all


@pytest.fixture
def folder(tmp_path):
    """Labels with odd column names and in one language, and pages."""
    rows = [f"Wo ist K{i}?;Da ist K{i} im Haus {i}." for i in range(10)]
    (tmp_path / "odd.csv").write_text("\n".join(["Frage;Antwort", *rows]).replace(";", ","), encoding="utf-8")
    (tmp_path / "few.jsonl").write_text('{"query": "Wo?", "document": "Hier.", "language": "de"}\n', encoding="utf-8")
    pages = {f"pages/K{i}.de.md": f"# Haus {i}\n\nDa ist K{i} im Haus {i}.\n" for i in range(10)}
    return write_all(tmp_path, {**pages, "pages/oven.de.md": "# Brot\n\nBrot wird im Ofen gebacken.\n"})


@pytest.mark.slow
def test_odd_columns_of_one_language_become_an_index_and_a_report_within_the_limit_of_time(folder):
    flags = ["--columns", "query=Frage,document=Antwort", "--documents", folder / "pages", "--encoder", "tiny"]
    made = metasearch("tune", folder / "odd.csv", *flags, "--time", "0.001s", "--json", "-o", folder / "shop")
    lines = json.loads(made.stdout)["steps"]
    assert [(line["step"], line["pool"]) for line in lines] == [
        (step, "multilingual") for step in ("base encoder", "adapter", "adapter with answers")
    ]
    for said in (
        "plan: 4 steps (base encoder, adapter, adapter with answers, fine-tune) on 4 folds: at most about",
        "time: 3 of 4 folds are planned",
        "time: dropped the step 'fine-tune'",
        "Balanced scores were skipped: the documents are in one language.",
        "The language-neutral projection was skipped",
    ):
        assert said in made.stderr
    report = (folder / "shop/report.md").read_text(encoding="utf-8")
    assert "Kept: " in report
    assert "on 8 held-out questions in 3 folds" in report
    assert "oven.de.md" in metasearch("search", folder / "shop/index", "Was wird gebacken?").stdout
    assert "Kept: " in metasearch("resume", folder / "shop").stdout
    refused = metasearch("tune", folder / "odd.csv", *flags, "--seed", 1, "-o", folder / "shop", code=5)
    assert "holds a tuning with other settings (seed is 0, not 1)" in refused.stderr


def test_few_labels_in_one_language_keep_the_base_encoder_and_say_so(folder):
    made = metasearch("tune", folder / "few.jsonl", "--encoder", "tiny", "-o", folder / "few")
    assert "Too few labelled questions to hold some out (1;" in made.stdout
    assert "The base encoder is kept: the texts are too few for a projection" in made.stdout


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["odd.csv"], 3, "odd.csv:2: no column 'query'. Known: Antwort, Frage. Name yours: --columns query=COLUMN"),
        (
            ["odd.csv", "--columns", "query=Frag,document=Antwort"],
            3,
            "odd.csv:1: no column 'Frag'. Did you mean 'Frage'?",
        ),
        (["odd.csv", "--columns", "Frage"], 2, "'Frage': expected NAME=COLUMN,... such as query=question"),
        (["few.jsonl", "--time", "5x"], 2, "'5x': expected a time such as 30m, 2h or 90s"),
        (["few.jsonl", "--learners", "mmal"], 2, "unknown learner 'mmal'. Did you mean 'maml'?"),
        (["few.jsonl", "--learners", "distill"], 2, "learner 'distill' does not learn from labels"),
        (["few.jsonl", "--encoder", "minii"], 6, "unknown encoder 'minii'. Did you mean 'mini'?"),
        (["missing.csv"], 3, "missing.csv: cannot be read: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(folder, flags, code, said, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused = metasearch("tune", *flags, "-o", "out", code=code)
    assert said in refused.stderr.splitlines()[-1]
    assert not (folder / "out").exists()
