"""Tasks that train on translations, as a user runs them: files, a program, an oracle; reports, resume, studies."""

import json
import shutil
import sys

import pytest
from click.testing import CliRunner

from helpers.crossval import inline
from metasearch.cli import main
from metasearch.config.library import shipped
from metasearch.evaluation.study.read import read_study

TINY = ("--encoder", "tiny", "--device", "cpu")
SMALL = ("episodes.k=2", "episodes.q=2", "episodes.n_neg=1", "budget.meta_train=4", "budget.meta_valid=0")
TRAIN = ("train", "--mode", "mono-mono", "--learner", "fine-tune", *TINY, "--max-steps", 1)
# Upper case, for the test to see what was translated.
PROGRAM = """\
import json, os, sys
salt = os.environ.get("SALT", "")
for line in sys.stdin:
    print(json.dumps({"text": json.loads(line)["text"].upper() + salt}))
"""
TASK = """\
task: shop
description: English questions; trained in German, which no file of the data has
kind: retrieval
source: {{paper: none, url: https://example.org, licence: CC0}}
reader: jsonl
data: shop
languages: [en]
encoder: tiny
max_length: {{question: 48, candidate: 64}}
measures: [map@20]
monitor: map@20
translate: {{{block}}}
arrangements:
  mono -> mono: [de_de -> de_de]
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with English data, of which `write` makes a task."""
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tasks/shop").mkdir(parents=True)
    shutil.copy(shipped() / "demo/en.jsonl", tmp_path / "tasks/shop/en.jsonl")
    (tmp_path / "tasks/translate.py").write_text(PROGRAM, encoding="utf-8")

    def write(block):
        (tmp_path / "tasks/shop.yaml").write_text(TASK.format(block=block), encoding="utf-8")
        return tmp_path

    return write


BY_PROGRAM = f"by: command, source: en, into: [de], options: {{command: [{sys.executable}, translate.py]}}"


def metasearch(*arguments):
    sets = [word for each in SMALL for word in ("--set", each)] if arguments[0] in ("train", "crossval") else []
    return CliRunner().invoke(main, [*map(str, arguments), *sets])


def rows_of(run):
    return [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_language_that_no_file_has_is_trained_on(shop):
    folder = shop(BY_PROGRAM)
    done = metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / "run")
    assert done.exit_code == 0, done.output
    report = (folder / "run/report.md").read_text(encoding="utf-8")
    assert "| en into de by command: " in report
    (fingerprint,) = {row["translated"] for row in rows_of(folder / "run")}
    assert f"fingerprint {fingerprint}" in report
    facts = json.loads((folder / "run/facts.json").read_text(encoding="utf-8"))["translated"]
    assert (facts["by"], facts["into"], facts["fingerprint"]) == ("command", ["de"], fingerprint)
    assert "| translations  | en into de by command" in (folder / "run/model/README.md").read_text(encoding="utf-8")
    shown = metasearch("show", "shop", "--mode", "mono-mono", "--include", folder / "tasks").output
    assert "de_de -> de_de" in shown
    # Questions of the episode, in the program's German.
    assert any(f"{word} " in shown for word in ("WHERE", "WHAT", "WHEN", "WHO", "HOW", "WHICH"))


@pytest.mark.slow
def test_files_and_a_program_that_say_the_same_give_the_same_rows(shop):
    folder = shop(BY_PROGRAM)
    metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / "program")
    kept = [json.loads(line) for path in folder.glob("cache/*/*.jsonl") for line in path.read_text().splitlines()]
    lines = "".join(f"{row['text']}\t{row['translation']}\n" for row in kept)
    (folder / "tasks/shop/en-de.tsv").write_text(lines, encoding="utf-8")
    shop("source: en, into: [de]")
    metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / "files")
    one, other = (rows_of(folder / name) for name in ("program", "files"))
    assert [row["value"] for row in one] == [row["value"] for row in other]
    assert {row["translated"] for row in one} == {row["translated"] for row in other}
    # Another way to make them is other data, all the same: it may give others tomorrow.
    assert {row["data"] for row in one} != {row["data"] for row in other}


@pytest.mark.slow
def test_the_cache_deleted_gives_the_same_bits(shop):
    folder = shop(BY_PROGRAM)
    for name in ("first", "second"):
        done = metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / name)
        assert done.exit_code == 0, done.output
        shutil.rmtree(folder / "cache")
    first, second = ([{**row, "versions": None} for row in rows_of(folder / name)] for name in ("first", "second"))
    assert first == second
    weights = [(folder / name / "model/model.safetensors").read_bytes() for name in ("first", "second")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_run_does_not_go_on_with_other_translations(shop, monkeypatch):
    folder = shop(BY_PROGRAM)
    metasearch(*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / "run")
    (folder / "run/report.md").unlink()
    # A program that gives others each time, without the cache that hides it.
    shutil.rmtree(folder / "cache")
    monkeypatch.setenv("SALT", "!")
    done = metasearch("resume", folder / "run")
    assert (done.exit_code, "the translations have changed since the run began" in done.output) == (3, True), (
        done.output
    )
    # Another program is other data.
    (folder / "tasks/translate.py").write_text(PROGRAM.replace("upper", "title"), encoding="utf-8")
    done = metasearch("resume", folder / "run")
    assert (done.exit_code, "the data has changed since the run began" in done.output) == (3, True), done.output


@pytest.mark.parametrize(
    ("block", "code", "message"),
    [
        ("by: comand, source: en, into: [de]", 2, "yaml: translate: by: unknown translator 'comand'. Did you mean"),
        ("by: oracl, source: en, into: [de]", 2, "unknown translator 'oracl'. Did you mean 'oracle'?"),
        ("by: oracle, source: en, into: [de]", 2, "translate.into: de is not a language of the task, whose rows an"),
        ("source: en, into: [de, en]", 2, "'en' is the language that is translated from"),
        ("source: en, into: [de, de]", 2, "a language stands twice"),
        ("source: en, into: []", 2, "translate.into"),
        ("into: [de]", 2, "translate.source: this key is missing"),
        ("source: en, into: [de], option: {}", 2, "translate.option: unknown key. Did you mean 'options'?"),
        ("source: en, into: [de], options: {pth: x}", 2, "translate: options: pth: unknown key. Did you mean 'path'?"),
        ("source: en, into: [de], options: {path: x.tsv}", 2, "expected {language}, or {source} and {target}"),
        ("by: command, source: en, into: [de]", 2, "translate: options: command: this key is missing"),
        ("source: en, into: [de]", 3, "en-de.tsv: the translations cannot be read: No such file or directory"),
        ("source: xx, into: [de]", 3, "missing xx.jsonl"),
        ("by: ctranslate2, source: en, into: [de], options: {model: mt}", 3, "mt: no model of CTranslate2"),
    ],
)
def test_a_block_that_cannot_be_used_is_refused(shop, block, code, message):
    folder = shop(block)
    done = metasearch("validate", "shop", "--include", folder / "tasks")
    assert (done.exit_code, message in done.output) == (code, True), done.output


@pytest.mark.slow
def test_with_meta_valid_episodes_dev_must_have_the_language(shop):
    folder = shop(BY_PROGRAM)
    with_valid = (*TRAIN, "--task", "shop", "--include", folder / "tasks", "-o", folder / "run")
    done = CliRunner().invoke(main, [*map(str, with_valid), "--set", "budget.meta_valid=4"])
    assert done.exit_code == 3
    assert "dev is not translated, and has no rows in de" in done.output
    assert "--set budget.meta_valid=0" in done.output
    valid = metasearch("validate", "shop", "--include", folder / "tasks")
    assert valid.exit_code == 0, valid.output
    assert "dev: no rows in de, so it is for budget.meta_valid=0" in valid.output


def test_own_rows_must_be_spoken_of(shop):
    folder = shop("source: en, into: [de]")
    task = (folder / "tasks/shop.yaml").read_text(encoding="utf-8").replace("languages: [en]", "languages: [en, de]")
    (folder / "tasks/shop.yaml").write_text(task, encoding="utf-8")
    shutil.copy(shipped() / "demo/de.jsonl", folder / "tasks/shop/de.jsonl")
    (folder / "tasks/shop/en-de.tsv").write_text("a\tb\n", encoding="utf-8")
    done = metasearch("validate", "shop", "--include", folder / "tasks")
    assert (done.exit_code, "rows in de of its own; say own: drop" in done.output) == (2, True), done.output


@pytest.mark.slow
def test_the_map_of_a_studys_neutral_cells_is_estimated_from_translations_too(shop, monkeypatch):
    """Of three folds, whose cells share the vectors of the task's own texts: German is translated alone."""
    inline(monkeypatch)
    folder = shop(BY_PROGRAM)
    asked = ("crossval", "--task", "shop", "--include", folder / "tasks", *TINY, "--folds", "0,1,2", "--seeds", 0)
    done = CliRunner().invoke(main, [*map(str, (*asked, "--learner", "zero-shot,neutral", "-o", folder / "study"))])
    assert done.exit_code == 0, done.output
    assert len(rows_of(folder / "study/cells/neutral/fold-2-seed-0")) > 0


@pytest.mark.exhaustive
def test_a_study_trains_on_the_translations_of_each_fold_and_its_arms_stand_beside_those_of_own_rows(
    tmp_path, monkeypatch
):
    inline(monkeypatch)
    asked = ("crossval", "--task", "demo-oracle", "--mode", "mono-mono", *TINY, "--folds", "0,1", "--max-steps", 1)
    for name, learners in (("own", "fine-tune"), ("translated", "fine-tune,maml")):
        own = ("--set", "translate=false") if name == "own" else ()
        done = metasearch(*asked, "--learner", learners, *own, "--seeds", 1, "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
    cells = {fold: rows_of(tmp_path / f"translated/cells/maml-mono-mono/fold-{fold}-seed-1") for fold in (0, 1)}
    ((first,), (second,)) = ({row["translated"] for row in rows if row["learner"] == "maml"} for rows in cells.values())
    assert first != second
    assert {row["data"] for row in cells[0]} == {row["data"] for row in cells[1]}
    study = read_study([tmp_path / "own", tmp_path / "translated"])
    labels = {"zero-shot", "maml", "fine-tune, translate=false", "fine-tune, translate=none"}
    assert {arm.label for arm in study.arms} == labels


@pytest.mark.slow
def test_the_shipped_example_is_valid():
    done = metasearch("validate", "demo-oracle")
    assert done.exit_code == 0, done.output
    assert "mode mono-bi-multi: " in done.output
