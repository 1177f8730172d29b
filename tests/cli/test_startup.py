"""Commands that only look things up load no torch."""

import os
import subprocess
import sys

HEAVY = ("torch", "transformers", "sentence_transformers", "learn2learn", "scipy", "sklearn")


LOOKING_UP = [
    ["--help"],
    ["train", "--help"],
    ["doctor", "--help"],
    ["replay", "--help"],
    ["ls"],
    ["show", "demo"],
    ["show", "demo", "--mode", "mono-bi-multi"],
    ["show", "demo-sts", "--mode", "mono-bi"],
    ["show", "maml-align"],
]


def test_looking_things_up_imports_no_torch():
    """One process looks everything up; what it has loaded by then is listed after each command."""
    code = (
        "import sys\n"
        "from metasearch.cli import main\n"
        f"for args in {LOOKING_UP!r}:\n"
        "    try: main(args)\n"
        "    except SystemExit as end: assert not end.code, (args, end.code)\n"
        f"    print('HEAVY', *args, [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stdout.splitlines() if line.startswith("HEAVY")]
    assert said == [" ".join(["HEAVY", *args, "[]"]) for args in LOOKING_UP]


def test_doctor_without_folders_loads_torch_and_nothing_else_that_is_slow(tmp_path):
    code = (
        "import sys\n"
        "from metasearch.cli import main\n"
        "try: main(['doctor', '--json'])\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    environment = {**os.environ, "METASEARCH_CACHE": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.splitlines()[1:] == ["['torch']"]


def test_importing_the_package_imports_no_torch():
    code = f"import sys, metasearch; assert metasearch.__all__; print([n for n in {HEAVY!r} if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
