"""A small recipe and a small task as YAML, and what is reported when one of them is spoilt."""

from pathlib import Path

import pytest
from yaml import safe_dump, safe_load

from metasearch.config import yaml
from metasearch.config.library import shipped
from metasearch.config.recipe import Recipe
from metasearch.errors import ConfigError

RECIPE = """\
recipe: small
description: for a test
learner: maml
episodes: {k: 2, q: 3}
outer:
  lr: 1e-3
"""
TASK = """\
task: fjord
description: for a test
kind: retrieval
source: {paper: none, url: https://example.org, licence: CC0}
reader: jsonl
languages: [no, de]
encoder: tiny
measures: [map]
monitor: map
arrangements:
  mono -> bi: [no_no -> no_de]
"""


def problems(path: Path, model=Recipe, overrides=None) -> list[str]:
    """Read a file that has problems and return them, one a line."""
    with pytest.raises(ConfigError) as caught:
        yaml.read(path, model, overrides)
    return str(caught.value).splitlines()


def line_of(path: Path, text: str) -> str:
    """Return where a text stands first, as `file:line`."""
    found = [number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"{path}:{found[0]}"


def leaves(tree, at=""):
    """Return every value of a tree by its dotted key."""
    if not isinstance(tree, dict):
        return {at: tree}
    values = {}
    for name, branch in tree.items():
        values.update(leaves(branch, f"{at}.{name}".strip(".")))
    return values


def values_of(recipe):
    """Return what a recipe sets, by dotted key."""
    return leaves(recipe.model_dump(exclude={"sources", "recipe", "description"}))


def write_variant(folder, origin, name, **changes):
    """Write a shipped task under another name, with some keys changed; its data stays where it is."""
    tree = safe_load((shipped() / f"{origin}.yaml").read_text(encoding="utf-8"))
    tree |= {"task": name, "data": str(shipped() / origin), **changes}
    (folder / f"{name}.yaml").write_text(safe_dump(tree), encoding="utf-8")
