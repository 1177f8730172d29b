"""Facts of a run: settings in words, and library versions and processor, which affect its scores, too."""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.recipe import SET
from metasearch.config.run import flat
from metasearch.runs.rows import STAGE, Row
from metasearch.version import __version__

LIBRARIES = ("torch", "transformers", "sentence-transformers", "numpy")


def versions() -> dict[str, str]:
    """Return the versions that a score depends on; a loaded library names its build, such as `2.13.0+cu130`."""
    return {"metasearch": __version__, "python": platform.python_version(), **{n: _version(n) for n in LIBRARIES}}


def describe_versions(versions: Mapping[str, str]) -> str:
    """Return versions as one line."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _version(name: str) -> str:
    loaded = sys.modules.get(name.replace("-", "_"))
    return str(getattr(loaded, "__version__", None) or version(name))


def installed(name: str) -> str | None:
    """Return the version of an installed package, as `versions` does; None where it is not installed."""
    try:
        # Others are not asked: some warn when they are.
        return _version(name) if name in LIBRARIES else version(name)
    except PackageNotFoundError:
        return None


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Return the first library with different versions in two scores, or None; a build counts if both name theirs."""
    for name in {**one, **other}:
        (before, _, first), (now, _, second) = (str(each.get(name)).partition("+") for each in (one, other))
        if before != now or (first and second and first != second):
            return name
    return None


@cache
def processor() -> str:
    """Return the processor's name, which affects a score's last bits; `platform` lacks it on Linux."""
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int | None:
    """Return the cores that this process may use, in a container fewer than there are; None where nobody knows."""
    # macOS does not say which it may.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


# Run facts in words, for report and model card.

LOCAL = ("encoder", "teacher", "assistant", "student")
"""Facts that may be paths of this machine, which a model card must not show."""


def describe(config: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, str]:
    """Return facts by name, from a run's configuration and scores."""
    config = flat(config)
    asked = {name: str(config[name]) for name in LOCAL if config.get(name)}
    recipe = config.get("recipe") or {}
    facts = asked | (_describe_recipe(recipe, rows) if recipe else {})
    if config.get("mode"):
        facts["mode"] = str(config["mode"])
    if config.get("trim"):
        facts["vocabulary"] = f"trimmed to the words of {', '.join(map(str, config['trim']))}"
    if config.get("max_steps"):
        facts["maximum steps"] = str(config["max_steps"])
    if "fold" in config:
        facts["fold"] = str(config["fold"])
    if config.get("fold_seed") is not None:
        facts["fold seed"] = f"{config['fold_seed']} (articles or rows are shuffled)"
    facts |= {name: str(config[name]) for name in ("seed", "precision") if name in config}
    last = rows[-1] if rows else {}
    if config.get("mode") and last.get("step"):
        facts["weights"] = f"of outer step {last['step']}"
    if "versions" in last:
        facts["versions"] = describe_versions(last["versions"])
    return facts


def _describe_recipe(recipe: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, str]:
    facts = {name: str(recipe[name]) for name in ("learner", "recipe") if name in recipe}
    values = yaml.flatten(recipe)
    if changed := [f"{key}={values.get(key)}" for key, source in recipe.get("sources", {}).items() if source == SET]:
        facts["set"] = ", ".join(changed)
    if stages := [row["learner"] for row in rows if row.get("task") == STAGE]:
        facts["stages"] = ", ".join(stages)
    if recipe.get("labels"):
        pairs = " pair" if rows and rows[0]["pool"] == "pairs" else ""
        facts["labels"] = f"{recipe['labels']} of each language{pairs}"
    if recipe.get("neutralise"):
        facts["neutralise"] = f"{recipe['neutralise']['when']} training"
    if recipe.get("adapter"):
        facts["trained"] = "an adapter of queries; the encoder is frozen"
    return facts
