"""Words of all commands: their order in help, what a shell completes, forms of lists, and names of number formats."""

import re

import click
import pytest
from click.shell_completion import ShellComplete

from metasearch.cli import SECTIONS, main
from metasearch.cli._options import ListOption
from metasearch.cli.ls import KINDS
from metasearch.config.distill_run import DistillConfig
from metasearch.config.run import ComputeConfig

COMMANDS = {name: main.get_command(click.Context(main), name) for name in main.list_commands(click.Context(main))}
LISTS = [(name, each) for name, one in COMMANDS.items() for each in one.params if isinstance(each, ListOption)]


@pytest.mark.parametrize(("name", "option"), LISTS, ids=lambda each: getattr(each, "name", each))
def test_a_list_and_a_repeated_flag_are_the_same(name, option):
    values = list(getattr(option.type, "choices", ("7", "8")))[:2]
    if option.name == "columns" and name in ("adapt", "tune"):
        values = ["query=7", "document=8"]
    flag, context = option.opts[0], click.Context(COMMANDS[name])
    found = [
        option.handle_parse_result(context, {option.name: written}, [])[0]
        for written in ([",".join(values)], values, [*values, values[0]])
    ]
    assert len(found[0]) == 2
    assert found[0] == found[1] == found[2], flag


@pytest.mark.parametrize("flag", ["language", "languages", "prefer", "detect", "pools", "trackers"])
def test_options_with_several_names_take_lists(flag):
    assert flag in {parameter for _, each in LISTS for parameter in (each.name, each.name + "s")}


@pytest.mark.parametrize("name", ["train", "index", "search", "evaluate", "distill"])
def test_commands_take_short_names_of_precisions(name):
    option = next(each for each in COMMANDS[name].params if each.name == "precision")
    context = click.Context(COMMANDS[name])
    assert [option.type_cast_value(context, each) for each in ("fp32", "bf16")] == ["float32", "bfloat16"]
    with pytest.raises(click.BadParameter, match="unknown choice 'fp16'"):
        option.type_cast_value(context, "fp16")


def test_run_folders_keep_the_short_names_that_they_had():
    short, full = (ComputeConfig(precision=name) for name in ("bf16", "bfloat16"))
    assert short == full
    assert full.precision == "bfloat16"
    assert full.model_dump(mode="json")["precision"] == "bf16"
    assert DistillConfig.model_fields["target_type"].default == "float32"


def test_commands_are_listed_below_headings():
    shown = main.get_help(click.Context(main))
    found = re.findall(r"^(\S[^\n]*):$|^  ([a-z]+) +\S", shown[shown.index("Options:") :], flags=re.M)
    expected = [(heading, "") if not name else ("", name)
                for heading, commands in SECTIONS.items() for name in ("", *commands)]  # fmt: skip
    assert found[1:] == expected
    assert sorted(COMMANDS) == sorted(name for commands in SECTIONS.values() for name in commands)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls ", list(KINDS)),
        ("crossval --launcher ", ["local", "slurm", "ray"]),
        ("tra", ["train"]),
        ("train --task demo --precision ", ["float32", "bfloat16"]),
        ("distill --checkpointing ", ["off", "auto", "layers", "gradcache"]),
    ],
)
def test_names_are_offered(line, expected):
    *words, last = line.split(" ")
    found = ShellComplete(main, {}, "metasearch", "_METASEARCH_COMPLETE").get_completions(words, last)
    assert [item.value for item in found if item.type == "plain"] == expected
