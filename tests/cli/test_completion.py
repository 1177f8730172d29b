"""What a shell completes words with: by click's protocol, and in a real bash."""

import pytest
from click.shell_completion import ShellComplete

from metasearch.cli import main
from metasearch.cli.ls import KINDS

VARIABLE = "_METASEARCH_COMPLETE"


def offered(line, kind="plain"):
    """Return what is offered for the last word of a line; an empty one after a space."""
    *words, last = line.split(" ")
    found = ShellComplete(main, {}, "metasearch", VARIABLE).get_completions(words, last)
    return [item.value for item in found if item.type == kind]


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
    assert offered(line) == expected
