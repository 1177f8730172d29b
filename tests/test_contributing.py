"""The worked examples of CONTRIBUTING: each is written to the files it names in a copy of the package, and run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import metasearch
from helpers.documents import DOCUMENTS, blocks, commands, table
from helpers.layers import MAY_IMPORT
from helpers.packages import install
from metasearch.config import registry
from metasearch.config.library import shipped
from test_structure import imports_of

TEXT = DOCUMENTS["CONTRIBUTING.md"]
FILES = dict(re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", TEXT, flags=re.S | re.M))
"""Path from the root → text of each file that an example writes."""
MODULES = [path for path in FILES if path.endswith(".py")]
COMMANDS = [" ".join(words) for words in commands("CONTRIBUTING.md", "metasearch")]
# One process runs all of them, since torch takes seconds to import.
RUN_ALL = """
import doctest, importlib, json, sys, traceback
from click.testing import CliRunner
from metasearch.cli import main
asked, ended = json.load(sys.stdin), {}
for command in asked["commands"]:
    result = CliRunner().invoke(main, command.split())
    ended[command] = [result.exit_code, result.output]
for name in asked["modules"]:
    try:
        ended[name] = list(doctest.testmod(importlib.import_module(name)))
    except Exception:
        ended[name] = [1, traceback.format_exc()]
print(json.dumps(ended))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Return what came of each command and of each module's doctests, run in a copy with all examples; and the copy."""
    root = tmp_path_factory.mktemp("checkout")
    leave_out = shutil.ignore_patterns("__pycache__", "tasks")
    shutil.copytree(Path(metasearch.__file__).parent, root / "metasearch", ignore=leave_out)
    shutil.copytree(shipped(), root / "tasks")
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        assert not (root / path).exists(), path
        (root / path).write_text(text, encoding="utf-8")
    (declared,) = blocks("CONTRIBUTING.md", "toml")
    offered = tomllib.loads(declared)["project"]["entry-points"]
    # Each module is the one of the metric's example.
    names = {module.partition(".")[2] for entries in offered.values() for module in entries.values()}
    source = FILES["metasearch/evaluation/metrics/success.py"]
    site = install(root, "search_extras", dict.fromkeys(names, source), offered)
    ran = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps({"commands": COMMANDS, "modules": [dotted(path) for path in MODULES]}),
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{site}"},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), root


def dotted(path):
    """Return the dotted name of a module's path."""
    return path.removesuffix(".py").replace("/", ".")


def outcome(ended, part):
    """Return the output of the command that matches a pattern, which must have succeeded."""
    (command,) = [command for command in COMMANDS if re.search(part, command)]
    code, output = ended[0][command]
    assert code == 0, output
    return output


def test_the_learner_and_the_loss_train(ended):
    assert "| mldg " in outcome(ended, "--learner mldg")
    steps = [json.loads(line) for line in (ended[1] / "runs" / "mldg" / "log.jsonl").read_text("utf-8").splitlines()]
    assert len([step for step in steps if "loss" in step]) == 2
    assert "| maml " in outcome(ended, "--recipe maml-soft")
    assert "temperature: 0.5" in (ended[1] / "runs" / "soft" / "config.yaml").read_text("utf-8")


def test_the_metric_is_reported(ended):
    values = [float(cell) for cell in re.findall(r"\d+\.\d\d", outcome(ended, "--task demo-success"))]
    assert "success@1 (test)" in outcome(ended, "--task demo-success")
    assert values
    assert all(0 <= value <= 100 for value in values)


def test_the_reader_and_the_encoder_give_texts_and_vectors(ended):
    assert re.search(r"\| *de *\| *en *\|", outcome(ended, "--task faq$"))
    assert "mini-prompted" in outcome(ended, "--encoder mini-prompted")


def test_the_section_is_in_the_report(ended):
    assert outcome(ended, "report runs/mldg")
    text = (ended[1] / "report" / "report.md").read_text("utf-8")
    assert "## Best and worst language" in text
    lines = (ended[1] / "report" / "tables" / "extremes.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["zero-shot", "mldg"]


def test_a_package_of_ones_own_offers_a_metric(ended):
    assert re.search(r"hit +from package search-extras: search_extras.hit", outcome(ended, "^ls metrics"))


def test_every_kind_of_plug_in_has_its_group_and_its_example():
    for name, kind in registry.KINDS.items():
        assert f"`metasearch.{name}`" in TEXT
        assert any(kind.definition().search(FILES[path]) for path in MODULES), name


@pytest.mark.parametrize("path", MODULES)
def test_a_module_can_be_imported_and_its_doctests_hold(ended, path):
    failed, tried = ended[0][dotted(path)]
    assert failed == 0, tried
    assert tried == FILES[path].count(">>> ")


@pytest.mark.parametrize("path", MODULES)
def test_an_example_imports_what_its_package_may(path):
    room = path.split("/")[1]
    parts_of = [name.split(".") for name, _ in imports_of(FILES[path], tuple(path.split("/")[:-1]))]
    imported = {parts[1] for parts in parts_of if parts[0] == "metasearch"}
    assert imported <= {*MAY_IMPORT[room], room}


def test_the_examples_are_linted_and_formatted(ended):
    paths = [str(ended[1] / path) for path in MODULES]
    ruff = [Path(sys.executable).parent / "ruff"]
    settings = ["--config", str(Path(__file__).parents[1] / "pyproject.toml")]
    for command in (["check"], ["format", "--check"]):
        ran = subprocess.run([*ruff, *command, *settings, *paths], capture_output=True, text=True, cwd=ended[1])
        assert ran.returncode == 0, ran.stdout


def test_the_examples_import_the_modules_that_are_public():
    listed = {row[0].strip("`") for row in table("CONTRIBUTING.md", "module")}
    assert {module for module in imported("CONTRIBUTING.md")} == listed


def test_other_documents_import_the_package_alone():
    """And the modules for other libraries."""
    public = {"metasearch", "metasearch.sentence_transformers", "metasearch.mteb"}
    others = {name: imported(name) - public for name in DOCUMENTS if name != "CONTRIBUTING.md"}
    assert {name: found for name, found in others.items() if found} == {}


def imported(document):
    """Return the modules of metasearch that the Python blocks of a document import from."""
    sources = [imports_of(text, ["metasearch"]) for text in blocks(document, "python")]
    return {name for source in sources for name, _ in source if name.split(".")[0] == "metasearch"}
