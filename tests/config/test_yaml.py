"""Strict YAML: what a declaration says is what is read, with `include:`, `--set` and every problem by file and line."""

import re
from functools import partial

import pytest
import yaml

from helpers.declarations import RECIPE, TASK, line_of, problems
from metasearch.config import yaml as spec_yaml
from metasearch.config.distill_run import RolesConfig
from metasearch.config.library import shipped
from metasearch.config.recipe import Outer, Recipe
from metasearch.config.run import EncoderConfig
from metasearch.config.study import StudyConfig
from metasearch.config.task import Task
from metasearch.errors import ConfigError


@pytest.mark.parametrize(("written", "value"), [("1e-3", 1 / 1000), ("5e-05", 5 / 100_000), ("2", 2.0), ("'0.5'", 0.5)])
def test_a_number_in_any_notation_is_a_number(write, written, value):
    assert spec_yaml.read(write(RECIPE.replace("1e-3", written)), Recipe).outer.lr == value


def test_declarations_read_alike_with_and_without_libyaml(monkeypatch):
    class Plain(yaml.SafeLoader):
        yaml_implicit_resolvers = spec_yaml._Loader.yaml_implicit_resolvers

    paths = sorted((shipped() / "distillation").glob("*.yaml"))[:3] + sorted(shipped().glob("*.yaml"))[:3]
    fast = [spec_yaml._read(path) for path in paths]
    monkeypatch.setattr(spec_yaml, "_Loader", Plain)
    assert [spec_yaml._read(path) for path in paths] == fast


@pytest.mark.parametrize("text", ["no", "on", "012", "1e3", "12:30:45", "2024-01-01", "0x1F", "'null'", "~x", "τέλος"])
def test_a_text_stays_as_it_is_written(write, text):
    read = spec_yaml.read(write(RECIPE.replace("for a test", text)), Recipe)
    assert read.description == text.strip("'")


@pytest.mark.parametrize("key", ["encoder", "reader"])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "expected a text, got nothing"),
        ("~", "expected a text, got nothing"),
        ("''", "expected a name (got '')"),
        ("' '", "expected a name (got ' ')"),
    ],
)
def test_an_empty_name_is_refused_with_its_line_and_is_no_folder(write, key, written, said):
    path = write(re.sub(f"(?m)^{key}: .*$", f"{key}: {written}", TASK))
    assert problems(path, Task) == [f"{line_of(path, f'{key}:')}: {key}: {said}"]


@pytest.mark.parametrize("settings", [EncoderConfig, partial(RolesConfig, teacher="e5")])
def test_an_encoder_has_a_name(settings):
    with pytest.raises(ValueError, match="expected a name"):
        settings(**{"student" if isinstance(settings, partial) else "name": " "})


def test_the_languages_of_pairs_are_those_of_the_task(write):
    similarity = TASK.replace("kind: retrieval", "kind: similarity\npairs: [no-de, fr-no]")
    path = write(similarity.replace("[map]", "[pearson]").replace("monitor: map", "monitor: pearson"))
    (message,) = problems(path, Task)
    assert message.startswith(f"{path}:{line_of(path, 'pairs').rpartition(':')[2]}: pairs.1: fr is not a language of")


def test_a_pattern_written_in_two_ways_is_refused_instead_of_dropped(write):
    path = write(TASK + "  mono->bi: [de_de -> de_no]\n")
    (message,) = problems(path, Task)
    assert "mono -> bi" in message
    assert "duplicated" in message


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("[de, fr]", ["de", "fr"]),
        ("[no]", ["no"]),
        ("[1e-3]", ["1e-3"]),
        ("[]", []),
        ("null", None),
        ("1e-4", "1e-4"),
        ("no", "no"),
        ("", ""),
        ("a [b]", "a [b]"),
    ],
)
def test_a_value_of_the_command_line_is_a_list_null_or_text(written, value):
    assert spec_yaml.parse_value(written, "--set k") == value


@pytest.mark.parametrize("written", ["[de, fr", "[de]]", "[de, fr] x", "["])
def test_a_list_that_does_not_end_is_refused_with_the_right_way_to_write_one(written):
    with pytest.raises(ConfigError) as caught:
        spec_yaml.parse_value(written, "--set k")
    assert str(caught.value) == f"--set k: expected a list such as [de, fr], got '{written}'"


CHILD = "include: small\nrecipe: child\nouter: {eps: 1e-6}\n"


def test_an_included_file_may_include_another(write):
    write(RECIPE)
    write(CHILD, "child")
    found = spec_yaml.read(write("include: child\nrecipe: grandchild\nouter: {lr: 2e-3}\n", "grandchild"), Recipe)
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
    assert (
        spec_yaml.read_stored(stored, Recipe).model_dump() == spec_yaml.read(write(RECIPE, "now"), Recipe).model_dump()
    )


@pytest.mark.parametrize("used", ["merge: 1", "merge: [1]", "merge: {alphas: null}", "merge: null\nstages: [1]"])
def test_a_stored_file_must_not_have_an_unknown_option_that_was_used(write, used):
    name = used.split("\n")[-1].split(":")[0]
    with pytest.raises(ConfigError, match=rf": {name}: unknown key"):
        spec_yaml.read_stored(write(f"{RECIPE}{used}\n"), Recipe)


@pytest.mark.parametrize("text", ["no", "null", "1e-3", "012", "", "ελ ไทย हि", "a: b # c", "two\nlines"])
def test_what_is_written_is_read_back(write, text):
    tree = {"recipe": text, "description": "d", "learner": "maml", "outer": {"lr": 1e-5, "eps": 1e-8}}
    recipe = spec_yaml.read(write(spec_yaml.dump(tree)), Recipe)
    assert (recipe.recipe, recipe.outer) == (text, Outer(lr=1e-5, eps=1e-8))


def test_an_unknown_key_in_a_list_comes_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"trained\.0\.mde: unknown key\. Did you mean 'mode'"):
        spec_yaml.check({"trained": [{"mde": "trans"}]}, StudyConfig, "study.yaml")
