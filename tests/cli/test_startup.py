"""Commands that need no encoder load no torch."""

import subprocess
import sys

import pytest

from helpers.studies import Made, write_run

HEAVY = ("torch", "transformers", "sentence_transformers", "learn2learn", "scipy", "sklearn")


LOOKING_UP = [
    ["--help"],
    ["train", "--help"],
    ["doctor", "--help"],
    ["ls"],
    ["show", "demo"],
    ["show", "demo", "--mode", "mono-bi-multi"],
    ["show", "demo-sts", "--mode", "mono-bi"],
    ["show", "maml-align"],
]


@pytest.mark.slow
def test_looking_things_up_and_reporting_import_no_torch(tmp_path):
    """One process does everything; what it has loaded by then is listed after each command."""
    run = write_run(tmp_path / "run", Made(1.0, learner="maml"))
    report = ["report", str(run), "-o", str(tmp_path / "report")]
    commands = [*LOOKING_UP, report]
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
    loaded = [(args, "['scipy']" if args is report else "[]") for args in commands]  # for its intervals
    assert said == [" ".join(["HEAVY", *args, names]) for args, names in loaded]


def collector_after(line, end="import metasearch.encoders"):
    """Return the threshold of the collector and whether it passes over anything, after two lines of a new process."""
    code = f"import gc\n{line}\n{end}\nprint(gc.get_threshold(), gc.get_freeze_count() > 0)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_command_collects_garbage_once_its_libraries_are_there_and_then_as_usual():
    begun = "import metasearch.cli\nfrom metasearch import __main__\nfrom metasearch.runs import signals\n"
    begun += "signals.listen = lambda: None\nmetasearch.cli.main = lambda **_: print(gc.get_threshold())"
    usual = collector_after("", "pass").removesuffix(" False")
    said = collector_after(begun, "__main__.main()\nkept = [[] for _ in range(__main__._STARTUP_OBJECTS + 1)]")
    assert said.splitlines() == [f"(700000,{usual.partition(',')[2]}", f"{usual} True"]
