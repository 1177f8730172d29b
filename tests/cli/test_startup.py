"""Commands that need no encoder load no torch."""

import os
import re
import subprocess
import sys
from importlib.metadata import requires

import pytest

from helpers.commands import metasearch
from helpers.studies import Made, write_run

HEAVY = ("torch", "transformers", "sentence_transformers", "learn2learn", "scipy", "scipy.stats", "sklearn")


HELP = ("--help", "train --help", "doctor --help", "ls", "show maml-align")
SHOW = ("show demo", "show demo --mode mono-bi-multi", "show demo-sts --mode mono-bi")


@pytest.mark.parametrize(("command", "kernels"), [("tune", "32"), ("serve", "128")])
def test_commands_limit_the_kernels_that_onednn_keeps(command, kernels, monkeypatch):
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, "")  # so that it is as before after the test
    monkeypatch.delenv(name)
    metasearch(command, "--help")
    assert os.environ[name] == kernels


@pytest.mark.slow
def test_looking_things_up_and_reporting_import_no_torch(tmp_path):
    """One process does everything; what it has loaded by then is listed after each command."""
    run = write_run(tmp_path / "run", Made(1.0, learner="maml"))
    report = ["report", str(run), "-o", str(tmp_path / "report")]
    compare = ["compare", str(run)]
    commands = [*map(str.split, (*HELP, *SHOW)), compare, report]
    code = (
        "import sys, metasearch\n"
        "assert metasearch.__all__\n"
        "from metasearch.cli import main\n"
        f"for args in {commands!r}:\n"
        "    try: main(args)\n"
        "    except SystemExit as end: assert not end.code, (args, end.code)\n"
        f"    print('HEAVY', *args, [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stdout.splitlines() if line.startswith("HEAVY")]
    loaded = [(args, "['scipy']" if args in (compare, report) else "[]") for args in commands]  # for its intervals
    assert said == [" ".join(["HEAVY", *args, names]) for args, names in loaded]


SEARCHING = {
    "click", "filelock", "metasearch", "numpy", "pydantic", "safetensors", "semantic_text_splitter", "tokenizers",
    "torch", "tqdm", "yaml",
}  # fmt: skip
"""Packages of `dependencies` in pyproject.toml that a search imports."""
TRAINING = ["transformers", "sentence_transformers", "learn2learn", "sklearn", "scipy", "pandas", "sympy", "datasets"]


@pytest.mark.slow
def test_an_index_and_a_search_import_what_they_need(tmp_path, monkeypatch):
    """Nothing that trains. The second one: the first finds out whether the encoder needs its whole model."""
    (tmp_path / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))

    def run(*args):
        code = (
            "import sys\n"
            "from metasearch.cli import main\n"
            f"try: main({args!r})\n"
            "except SystemExit as end: assert not end.code\n"
            "print('LOADED', *{name.partition('.')[0] for name in sys.modules})\n"
            "print('PARTS', *[name for name in sys.modules if name.startswith(('metasearch.', 'torch._dynamo'))])\n"
        )
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        loaded, parts = (set(line.split()[1:]) for line in said.splitlines() if line.startswith(("LOADED", "PARTS")))
        layers = {name.split(".")[1] for name in parts if name.startswith("metasearch.")}
        assert layers == {"cli", "config", "data", "encoders", "errors", "io", "runs", "search", "version"}
        return loaded, parts

    options = ("--encoder", "mini", "--language", "en", "--precision", "bfloat16")
    metasearch("index", tmp_path / "a.txt", *options, "-o", tmp_path / "first.index")
    indexed, _ = run("index", "a.txt", *options, "-o", "a.index")
    assert not indexed & set(TRAINING)
    loaded, parts = run("search", "a.index", "Where is the key?")
    needed = [each for each in requires("metasearch-encoders") or () if "extra ==" not in each]
    own = {re.split("[<>=;\\[ ]", each)[0].lower().replace("-", "_") for each in needed}
    own = {{"pyyaml": "yaml"}.get(name, name) for name in own} | {"metasearch", *TRAINING}
    assert loaded & own == SEARCHING
    assert not [name for name in parts if name.startswith("torch._dynamo")]


def collector_after(line, end="import metasearch.encoders.open"):
    """Return the threshold of the collector and whether it passes over anything, after two lines of a new process."""
    code = f"import gc\n{line}\n{end}\nprint(gc.get_threshold(), gc.get_freeze_count() > 0)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_command_collects_garbage_once_its_libraries_are_there_and_then_as_usual():
    begun = "import metasearch.cli\nfrom metasearch import __main__\nfrom metasearch.runs import signals\n"
    begun += "signals.listen = lambda: None\nmetasearch.cli.main = lambda **_: print(gc.get_threshold())"
    usual = collector_after("", "pass").removesuffix(" False")
    said = collector_after(begun, "__main__.main()\nkept = [[] for _ in range(__main__._STARTUP_OBJECTS + 1)]")
    assert said.splitlines() == [f"(700000,{usual.partition(',')[2]}", f"{usual} True"]
