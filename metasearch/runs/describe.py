"""Run facts in words, for report, model card and study page."""

from collections.abc import Mapping, Sequence
from typing import Any

from metasearch.config.run import flat
from metasearch.runs.rows import STAGE, Row
from metasearch.runs.versions import describe_versions

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
    if stages := [row["learner"] for row in rows if row.get("task") == STAGE]:
        facts["stages"] = ", ".join(stages)
    if recipe.get("labels"):
        pairs = " pair" if rows and rows[0]["pool"] == "pairs" else ""
        facts["labels"] = f"{recipe['labels']} of each language{pairs}"
    if recipe.get("neutralise"):
        facts["neutralise"] = f"{recipe['neutralise']['when']} training"
    kept = next((f"{row['alpha']:g}" for row in rows if "alpha" in row), None)
    if recipe.get("merge") and kept is not None:
        tried = ", ".join(f"{alpha:g}" for alpha in sorted({float(each) for each in recipe["merge"]["alphas"]}))
        facts["merge"] = f"alpha {kept}, the best on dev of {tried}"
    return facts
