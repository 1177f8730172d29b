"""The help of every command: grouped and complete."""

import re

import click

from metasearch.cli import SECTIONS, main

COMMANDS = {name: main.get_command(None, name) for name in main.list_commands(None)}


def test_commands_are_listed_below_headings():
    shown = main.get_help(click.Context(main))
    found = re.findall(r"^(\S[^\n]*):$|^  ([a-z]+) +\S", shown[shown.index("Options:") :], flags=re.M)
    expected = [(heading, "") if not name else ("", name)
                for heading, commands in SECTIONS.items() for name in ("", *commands)]  # fmt: skip
    assert found[1:] == expected
    assert sorted(COMMANDS) == sorted(name for commands in SECTIONS.values() for name in commands)
