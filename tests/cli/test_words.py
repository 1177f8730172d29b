"""One form of lists and one set of names of number formats, on all commands; short names are taken, too."""

import click
import pytest

from metasearch.cli import main
from metasearch.cli._options import ListOption
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
