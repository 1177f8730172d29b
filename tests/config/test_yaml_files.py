"""YAML files as files: `include:`, values put over a file, files that are no YAML, and writing."""

import pytest

from helpers.declarations import RECIPE, problems
from metasearch.config import yaml
from metasearch.config.recipe import Outer, Recipe
from metasearch.config.study import StudyConfig
from metasearch.errors import ConfigError

CHILD = "include: small\nrecipe: child\nouter: {eps: 1e-6}\n"


def test_an_included_file_may_include_another(write):
    write(RECIPE)
    write(CHILD, "child")
    found = yaml.read(write("include: child\nrecipe: grandchild\nouter: {lr: 2e-3}\n", "grandchild"), Recipe)
    assert (found.recipe, found.learner, found.outer) == ("grandchild", "maml", Outer(lr=2e-3, eps=1e-6))


@pytest.mark.parametrize("name", ["../small", "/small", "sub/small", "", "."])
def test_an_include_names_a_sibling_and_nothing_else(write, name):
    write(RECIPE)
    path = write(CHILD.replace("small", name), "child")
    (message,) = problems(path)
    assert message.startswith(f"{path}")
    assert "include: no file" in message


def test_a_problem_of_an_included_file_is_reported_with_that_file(write):
    base = write(RECIPE.replace("k: 2", "k: two"))
    path = write(CHILD, "child")
    (message,) = problems(path)
    assert message.startswith(f"{base}:4: episodes.k: ")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"outer": {"lr": "fast"}}, "outer.lr: input should be a valid number"),
        ({"outer": {"rate": "1"}}, "outer.rate: unknown key."),
        ({"outer": "1"}, "outer: expected keys below it, such as outer.optimizer (got"),
        ({"dropot": "true"}, "dropot: unknown key. Did you mean 'dropout'?"),
    ],
)
def test_a_wrong_value_put_over_a_file_is_named_with_the_flag_and_its_key(write, overrides, problem):
    path = write(RECIPE)
    (message,) = problems(path, overrides=overrides)
    assert message.startswith(f"--set: {problem}")


@pytest.mark.parametrize("unused", ["merge: null", "stages: []", "merge: {}", "  rate: null"])
def test_a_stored_file_may_have_options_of_another_version_that_were_not_used(write, unused):
    stored = write(f"{RECIPE}{unused}\n")
    assert yaml.read_stored(stored, Recipe).model_dump() == yaml.read(write(RECIPE, "now"), Recipe).model_dump()


@pytest.mark.parametrize("used", ["merge: 1", "merge: [1]", "merge: {alphas: null}", "merge: null\nstages: [1]"])
def test_a_stored_file_must_not_have_an_unknown_option_that_was_used(write, used):
    name = used.split("\n")[-1].split(":")[0]
    with pytest.raises(ConfigError, match=rf": {name}: unknown key"):
        yaml.read_stored(write(f"{RECIPE}{used}\n"), Recipe)


@pytest.mark.parametrize("text", ["no", "null", "1e-3", "012", "", "ελ ไทย हि", "a: b # c", "two\nlines"])
def test_what_is_written_is_read_back(write, text):
    tree = {"recipe": text, "description": "d", "learner": "maml", "outer": {"lr": 1e-5, "eps": 1e-8}}
    recipe = yaml.read(write(yaml.dump(tree)), Recipe)
    assert (recipe.recipe, recipe.outer) == (text, Outer(lr=1e-5, eps=1e-8))


def test_an_unknown_key_in_a_list_comes_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"trained\.0\.mde: unknown key\. Did you mean 'mode'"):
        yaml.check({"trained": [{"mde": "trans"}]}, StudyConfig, "study.yaml")
