"""What README, CONTRIBUTING and `docs/` say holds: commands, Python blocks, links, names, codes and imports."""

import importlib.util
import re
from functools import cache

import click
import pytest

from helpers.documents import DOCUMENTS, ROOT, anchors, commands, links, names, prose, table
from metasearch import __version__, errors
from metasearch.cli import main
from metasearch.config import registry, yaml
from metasearch.config.library import Library
from metasearch.config.measure import Measure
from metasearch.config.recipe import Recipe
from metasearch.config.task import Task

NOT_OURS = {"--no-deps", "--index-url", "--editable", "--extra", "--arms", "--axis"}
"""Flags of other programs that the prose names."""
STAGES = {"distill", "ema", "entailment"}
"""Learners of stages of a distillation."""


@cache
def flags_of(name):
    """Return the flags that a command's help lists."""
    command = main.get_command(None, name)
    records = [option.get_help_record(click.Context(command)) for option in command.params]
    return {flag for record in records if record for flag in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", record[0])}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_parse(document):
    """Every flag is one that `--help` shows, every choice and number is one that the command takes."""
    for words in commands(document, "metasearch"):
        assert words[0] in main.list_commands(None)
        assert {word.split("=")[0] for word in words[1:] if re.match("-[-a-z]", word)} <= flags_of(words[0]), words
        main.get_command(None, words[0]).make_context(words[0], words[1:])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_flag_of_the_prose_and_every_target_of_make_exists(document):
    known = {flag for command in main.list_commands(None) for flag in flags_of(command)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", prose(document))) - NOT_OURS <= known
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)(?:`|\s)", DOCUMENTS[document], flags=re.M))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))


def test_scripts_and_their_flags_exist():
    help_text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py"))
    for words in (words for document in DOCUMENTS for words in commands(document, "python -m") if words[0] != "venv"):
        assert importlib.util.find_spec(words[0]) is not None, words
        assert {word for word in words if word.startswith("--") and f'"{word}"' not in help_text} == set(), words


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files_and_headings(document):
    folder = (ROOT / document).parent
    for path, anchor in links(document):
        target = (folder / path).resolve() if path else ROOT / document
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"
    for path in re.findall(r"`(tests/[\w/]+\.py)", DOCUMENTS[document]):
        assert (ROOT / path).is_file(), path


def test_no_merge_is_left_half_done_in_the_changelog():
    assert not re.findall(r"^[<=>]{7}.*", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_the_citation_is_of_this_version():
    citation = yaml.tree(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["title"], citation["version"]) == ("metasearch", __version__)


def test_every_document_is_in_the_index_and_the_readme_is_short_and_leads_there():
    linked = {f"docs/{path}" for path, _ in links("docs/index.md")}
    assert {path for path in DOCUMENTS if path.startswith("docs/")} - {"docs/index.md"} <= linked
    assert {"docs/index.md", "CONTRIBUTING.md"} <= {path for path, _ in links("README.md")}
    assert len((ROOT / "README.md").read_bytes()) <= 10_000


@pytest.mark.parametrize(
    ("document", "head", "expected"),
    [
        ("docs/tasks.md", "task", Library().names("task")),
        ("docs/tasks.md", "mode", Library().names("mode")),
        ("docs/distillation.md", "recipe", Library().names("distillation")),
        ("docs/recipes.md", "loss", registry.names("losses")),
        ("docs/recipes.md", "learner", {*registry.names("learners")} - STAGES),
        ("docs/guide.md", "name", registry.names("encoders")),
        ("docs/tasks.md", "key", [field.alias or name for name, field in Task.model_fields.items()]),
    ],
)
def test_a_table_lists_everything_there_is(document, head, expected):
    assert sorted(name for row in table(document, head) for name in names(row[0])) == sorted(expected)


def test_the_recipes_are_listed_by_name_or_by_learner_and_encoder():
    listed = [name for row in table("docs/recipes.md", "recipe") for name in names(row[0])]
    patterns = [re.escape(name).replace("<learner>", "[a-z-]+") for name in listed]
    recipes = Library().names("recipe")
    assert [name for name in recipes if not any(re.fullmatch(pattern, name) for pattern in patterns)] == []
    assert [own for own in patterns if not any(re.fullmatch(own, name) for name in recipes)] == []


def test_the_measures_are_the_metrics_with_and_without_a_cut_off():
    listed = {name.split("@")[0] for row in table("docs/tasks.md", "measure") for name in names(row[0])}
    assert listed == set(registry.names("metrics"))
    for names_of, kind, _ in table("docs/tasks.md", "measure"):
        for name in names(names_of):
            Measure.parse(name.replace("@k", "@5"), kind)


def test_the_keys_of_a_recipe_exist():
    for row in table("docs/recipes.md", "key"):
        for name in names(row[0]):
            fields = Recipe.model_fields
            for part in name.split("."):
                field = fields[part]
                fields = getattr(field.annotation, "model_fields", {})


def test_the_modes_are_those_of_their_files():
    links_of = {name: tuple(cells) for (cell, *cells) in table("docs/tasks.md", "mode") for name in names(cell)}
    for mode in Library().modes():
        phases = [mode.meta_train, mode.meta_valid]
        shown = tuple("the four above" if len(patterns) == 4 else str(patterns[0]) for patterns in phases)
        assert links_of[mode.mode] == tuple(text.replace("->", "→") for text in shown)


def test_the_exit_codes_are_those_of_the_errors():
    rows = table("docs/exit-codes.md", "code")
    codes = {(value.exit_code, name) for name, value in vars(errors).items() if hasattr(value, "exit_code")}
    listed = {(int(code), *names(cell)) for code, cell, _ in rows}
    assert listed == {(0,), (1,), *codes - {(1, "MetasearchError")}}
