"""Tasks that train on translations, as a user runs them: files, an oracle; reports, resume, studies."""

import csv
import json
import re
import shutil

import pytest

from helpers.commands import metasearch
from metasearch.config.library import shipped
from metasearch.data import translate as module
from metasearch.runs.rows import read_rows

TINY = ("--encoder", "tiny", "--device", "cpu")
SMALL = ("episodes.k=2", "episodes.q=2", "budget.meta_train=4", "budget.meta_valid=0")
TRAIN = ("train", "--mode", "mono-mono", "--learner", "fine-tune", *TINY, "--max-steps", 1)
TASK = """\
task: shop
description: English pairs; trained in German, which no file of the data has
kind: similarity
source: {{paper: none, url: https://example.org, licence: CC0}}
reader: csv
data: shop
languages: [en]
pairs: [en-en]
encoder: tiny
max_length: {{text: 48}}
measures: [pearson]
monitor: pearson
translate: {{{block}}}
arrangements:
  mono -> mono: [de_de -> de_de]
"""


@pytest.fixture
def shop(tmp_path):
    """A folder with English data, of which `write` makes a task."""
    (tmp_path / "tasks/shop").mkdir(parents=True)
    shutil.copy(shipped() / "demo-sts/en-en.csv", tmp_path / "tasks/shop/en-en.csv")

    def write(block):
        (tmp_path / "tasks/shop.yaml").write_text(TASK.format(block=block), encoding="utf-8")
        return tmp_path

    return write


BY_FILES = "source: en, into: [de], overlap: drop"


def translate(folder, change):
    """Write a translation of every text: the text, changed, for the test to see it."""
    rows = csv.DictReader((folder / "tasks/shop/en-en.csv").read_text("utf-8").splitlines())
    texts = dict.fromkeys(text for row in rows for text in (row["text1"], row["text2"]))
    lines = "".join(f"{text}\t{change(text)}\n" for text in texts)
    (folder / "tasks/shop/en-de.tsv").write_text(lines, encoding="utf-8")


def train(folder, name):
    """Train on the task of a folder, in a run below it."""
    sets = [f"--set={each}" for each in SMALL]
    metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", *sets, "-o", folder / name)


@pytest.mark.slow
def test_a_language_that_no_file_has_is_trained_on(shop):
    folder = shop(BY_FILES)
    translate(folder, str.upper)
    train(folder, "run")
    report = (folder / "run/report.md").read_text(encoding="utf-8")
    assert "| en into de by files: " in report
    (fingerprint,) = {row["translated"] for row in read_rows(folder / "run/results.jsonl")}
    assert f"fingerprint {fingerprint}" in report
    facts = json.loads((folder / "run/facts.json").read_text(encoding="utf-8"))["translated"]
    assert (facts["by"], facts["into"], facts["fingerprint"]) == ("files", ["de"], fingerprint)
    assert "| translations  | en into de by files" in (folder / "run/model/README.md").read_text(encoding="utf-8")
    shown = metasearch("show", "shop", "--mode", "mono-mono", "--include", folder / "tasks").output
    assert "de_de -> de_de" in shown
    assert re.search("[A-Z]{3} [A-Z]{3}", shown)  # texts of the episode, in capital letters


@pytest.mark.slow
def test_a_run_does_not_go_on_with_other_translations(shop, monkeypatch):
    folder = shop(BY_FILES)
    translate(folder, str.upper)
    train(folder, "run")
    (folder / "run/report.md").unlink()
    translate(folder, str.title)
    # Files that change between two readings.
    with monkeypatch.context() as changed:
        changed.setattr(module, "fingerprint_files", lambda *_: "same")
        train(folder, "other")
        (folder / "other/report.md").unlink()
        translate(folder, str.swapcase)
        said = metasearch("resume", folder / "other", code=3).output
        assert "the translations have changed since the run was created" in said
    assert "the data has changed since the run began" in metasearch("resume", folder / "run", code=3).output


@pytest.mark.parametrize(
    ("block", "code", "message"),
    [
        ("by: command, source: en, into: [de]", 2, "translate.by: input should be 'files' or 'oracle' (got 'command')"),
        ("by: oracle, source: en, into: [de]", 2, "translate.by: a similarity task takes files with translations; use"),
        ("source: en, into: [de], own: keeps", 2, "translate.own"),
        ("source: en, into: [de, en]", 2, "'en' is the source language"),
        ("source: en, into: [de, de]", 2, "duplicate language"),
        ("source: en, into: []", 2, "translate.into"),
        ("into: [de]", 2, "translate.source: missing key"),
        ("source: en, into: [de], option: {}", 2, "translate.option: unknown key. Did you mean 'options'?"),
        ("source: en, into: [de], options: {pth: x}", 2, "translate.options.pth"),
        ("source: en, into: [de], options: {path: x.tsv}", 2, "expected {language}, or {source} and {target}"),
        ("source: en, into: [de]", 3, "en-de.tsv: the translations cannot be read: No such file or directory"),
        ("source: xx, into: [de]", 3, "missing xx-xx.csv"),
    ],
)
def test_a_block_that_cannot_be_used_is_refused(shop, block, code, message):
    folder = shop(block)
    assert message in metasearch("show", "shop", "--check", "--include", folder / "tasks", code=code).output
