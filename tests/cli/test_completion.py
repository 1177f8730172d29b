"""What a shell completes words with: by click's protocol, and in a real bash."""

import pytest
from click.shell_completion import ShellComplete

from metasearch.cli import main
from metasearch.cli.ls import KINDS


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
