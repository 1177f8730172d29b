"""A wheel works in an environment of its own: without the checkout, a compiler, build settings or extras."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = "<html><body><p>The key is under the mat.</p><p>We open at nine.</p></body></html>"


def call(*words, cwd):
    """Run a command without the variables of the tests; return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "METASEARCH_"))}
    environment = {**kept, "METASEARCH_CACHE": str(cwd / "cache")}
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel as `pip install .` does."""
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("metasearch_encoders-*.whl")
    return built


def environment(folder):
    """Make an empty environment; return its Python and the folder of its packages."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    names = {"base": str(folder), "platbase": str(folder)}
    return python, Path(sysconfig.get_path("purelib", "venv", names))


# One process, since torch takes seconds to import.
RUN_ALL = """
import sys
import metasearch
from metasearch.cli import main
print(metasearch.__file__)
for words in sys.argv[1:]:
    print(">", words)
    main(words.split("|"), standalone_mode=False)
"""


def use(python, folder, *flags):
    """Train, index, tune and search in an environment, from a folder; return the output of all commands."""
    (folder / "home.html").write_text(DOCUMENT, encoding="utf-8")
    assert "maml-align" in call(python.parent / "metasearch", "ls", cwd=folder)
    rows = "".join(f"Where is item {i}?,Look on shelf {9 - i}.,en\n" for i in range(10))  # too hard untrained
    (folder / "labels.csv").write_text(f"query,document,language\n{rows}", encoding="utf-8")
    (folder / "site").mkdir()
    (folder / "site" / "home.html").write_text(DOCUMENT, encoding="utf-8")
    items = "".join(f"Look on shelf {i}.\n" for i in range(10))
    (folder / "site" / "items.csv").write_text(f"text\n{items}", encoding="utf-8")
    commands = [
        ("demo", "--max-steps", "1", *flags),
        ("index", "home.html", *flags, "-o", "home.index"),
        ("search", "home.index", "Wo ist der Schlüssel?"),
        ("tune", "labels.csv", "--documents", "site", "--encoder", "tiny", "-o", "shop"),
        ("search", "shop", "Where is item 3?"),
    ]
    output = call(python, "-c", RUN_ALL, *map("|".join, commands), cwd=folder)
    where, trained, _, found, tuned, shelf = output.split("\n> ")
    assert Path(where.strip()).is_relative_to(python.parents[1])
    assert "maml-align" in trained.partition("\n")[2]
    assert "under the mat" in found
    assert "Kept: " in tuned
    assert "on shelf" in shelf
    return output


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_trains_indexes_and_searches_without_the_checkout(wheel, tmp_path):
    """A .pth file adds the packages of the running environment, to save their download."""
    python, packages = environment(tmp_path / "env")
    (packages / "shared.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python]
    call(*pip, "install", "-q", "--no-deps", "--no-index", "--force-reinstall", wheel, cwd=tmp_path)
    use(python, tmp_path, "--encoder", "tiny")


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_pip_installs_all_that_is_needed(wheel, tmp_path):
    """Into an empty environment, from the registry: gigabytes where torch comes with CUDA."""
    python, _ = environment(tmp_path / "env")
    call(sys.executable, "-m", "pip", "--python", python, "install", "-q", wheel, cwd=tmp_path)
    assert "inner loop: built-in MAML" in use(python, tmp_path)
