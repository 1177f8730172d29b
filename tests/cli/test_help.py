"""The help of every command: grouped and complete; former names work and are not shown."""

import re

import click
import pytest

from metasearch.cli import SECTIONS, main
from metasearch.cli._options import OLD_NAMES

COMMANDS = {name: main.get_command(None, name) for name in main.list_commands(None)}


def test_commands_are_listed_below_headings():
    shown = main.get_help(click.Context(main))
    found = re.findall(r"^(\S[^\n]*):$|^  ([a-z]+) +\S", shown[shown.index("Options:") :], flags=re.M)
    expected = [(heading, "") if not name else ("", name)
                for heading, commands in SECTIONS.items() for name in ("", *commands)]  # fmt: skip
    assert found[1:] == expected
    assert sorted(COMMANDS) == sorted(name for commands in SECTIONS.values() for name in commands)


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_a_former_name_of_an_option_works_and_is_not_shown(old, new):
    renamed = {}
    for name, command in COMMANDS.items():
        option = next((each for each in command.params if new in (*each.opts, *each.secondary_opts)), None)
        if option is not None and old not in (*option.opts, *option.secondary_opts):
            context = click.Context(command)
            given = [[flag] if option.is_flag else [flag, "1"] for flag in (old, new)]
            renamed[name], again = (command.make_parser(context).parse_args(words)[0] for words in given)
            assert renamed[name] == again
            assert not re.search(rf"{old}(?![\w-])", command.get_help(context))
    assert renamed
