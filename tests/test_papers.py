"""Every command of docs/papers.md is one that runs today: it parses, and its settings and names resolve."""

import importlib
import re
import shlex

import pytest
from click.testing import CliRunner
from transformers import XLMRobertaConfig

from benchmarks.paper.grid import points
from benchmarks.paper.main_table import ARMS
from helpers.documents import DOCUMENTS
from metasearch.cli import distill, main
from metasearch.config.library import Library

COMMANDS = re.findall(r"`((?:metasearch|python -m benchmarks)[^`]+)`", DOCUMENTS["docs/papers.md"])
(TEACHER,) = re.findall(r'^TEACHER="(.*)"$', DOCUMENTS["docs/papers.md"], re.M)
FOLDERS = ("opus", "data", "studies/lareqa", "studies/modes")
FILES = ("AllNLI.tsv.gz", "stsb-en-train.csv", "stsb-en-augmented.csv")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Make the files and folders that the commands name; go there."""
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)
    for name in FILES:
        (tmp_path / name).write_text("", encoding="utf-8")
    config = XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1)
    config.save_pretrained(tmp_path / "xlm-r")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parsed(command, words):
    """Return the values of a command's options; a wrong flag or choice is an error of click."""
    return command.make_context(command.name, words).params


def invoke(*words):
    """Run a command; return its output."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output


def check_script(module, words):
    """Resolve the study of a benchmark: its task and learners, or its points."""
    values = parsed(importlib.import_module(module).main, words)
    Library().task(values["task"])
    if module.endswith("main_table"):
        assert ARMS[values["arms"]][values["task"]]
        return
    for arm in values["arms"]:
        learner, mode = arm.split(":")
        assert len(points(mode, values["encoder"], learner, values["axes"], values["base"])) > 1


def check(words):
    """Resolve a command of metasearch: run it where it has a trial, else load what it names."""
    name, *flags = words
    values = parsed(main.get_command(None, name), list(flags))
    if name == "crossval":
        declared = Library().task(values["task"])
        if declared.arrangements and all(":" in arm for arm in values["learner"]):
            # Cells that train are named by the data, which is not here: those of the embedded task of its kind serve.
            modes = [Library().mode(arm.split(":")[1]) for arm in values["learner"]]
            assert {str(pattern) for mode in modes for pattern in mode.meta_train} <= set(declared.arrangements)
            embedded = {"retrieval": "demo", "similarity": "demo-sts"}[declared.kind]
            words = [embedded if word == declared.name else word for word in words]
            del words[words.index("--data") : words.index("--data") + 2]
        assert "to do" in invoke(*words, "--dry-run")
    elif name == "distill":
        given = {key: value for key, value in values.items() if key not in ("resume", "output", "as_json")}
        assert distill.configure(**given).recipe.chosen
    elif values.get("checked"):  # the data is not here
        Library().task(values["name"])
    elif name == "show" or "--sizes-only" in flags:
        assert invoke(*words)
    elif values.get("task"):
        Library().task(values["task"])


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_a_command_resolves(line, home):
    program, *words = shlex.split(
        line.replace("$TEACHER", TEACHER).replace("$HOME", str(home)).replace("~/", f"{home}/")
    )
    if program == "python":
        check_script(words[1], words[2:])
    elif words[1:]:  # a command alone is named in the prose
        check(words)


def test_the_sizes_of_xlm_r_are_those_of_the_paper(home):
    sizes = invoke("compress", "xlm-r/config.json", "--bottleneck", "128", "--recurrent", "3", "--sizes-only")
    assert {"192,396,288", "32,493,312", "85,054,464", "21,263,616"} <= set(re.findall(r"[0-9,]{9,}", sizes))


def test_each_paper_has_its_tables():
    text = DOCUMENTS["docs/papers.md"]
    assert re.findall("^## (.+)$", text, re.M) == ["MAML-Align", "Multi-stage distillation", "EMA teacher"]
    assert len(COMMANDS) >= 30
