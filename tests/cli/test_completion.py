"""What a shell completes words with: by click's protocol, and in a real bash."""

import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from metasearch.cli import main
from metasearch.cli.ls import KINDS
from metasearch.config import registry
from metasearch.config.library import Library

SLOW = ("torch", "transformers", "sentence_transformers", "learn2learn", "numpy", "huggingface_hub")
VARIABLE = "_METASEARCH_COMPLETE"


def offered(line, kind="plain"):
    """Return what is offered for the last word of a line; an empty one after a space."""
    *words, last = line.split(" ")
    found = ShellComplete(main, {}, "metasearch", VARIABLE).get_completions(words, last)
    return [item.value for item in found if item.type == kind]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("train --mode ", Library().names("mode")),
        ("train --recipe ", Library().names("recipe")),
        ("train --learner ", registry.names("learners")),
        ("distill --recipe ", Library().names("distillation")),
        ("ls ", list(KINDS)),
        ("show tat", ["tatoeba"]),
        ("crossval --learner maml,fi", ["maml,fine-tune"]),
        ("export min", ["mini", "mini-e5", "minilm"]),
        ("crossval --launcher ", ["local", "slurm", "ray"]),
        ("tra", ["train"]),
        ("train --task demo --precision ", ["float32", "bfloat16"]),
        ("distill --checkpointing ", ["off", "auto", "layers", "gradcache"]),
    ],
)
def test_names_are_offered(line, expected):
    assert offered(line) == expected


def test_every_option_that_names_a_declaration_or_an_encoder_is_completed():
    named = {"task", "mode", "recipe", "learner", "encoder", "teacher", "assistant", "student"}
    without = [
        f"{name} {parameter.opts[0]}"
        for name in main.list_commands(None)
        for parameter in main.get_command(None, name).params
        if parameter.name in named
        and parameter._custom_shell_complete is None
        and not hasattr(parameter.type, "choices")
    ]
    assert without == []


def test_completing_loads_nothing_that_is_slow():
    lines = ["", "train --task ", "evaluate --encoder ", "show ", "crossval --learner ", "resume ", "ls "]
    code = (
        "import sys\n"
        "from click.shell_completion import ShellComplete\n"
        "from metasearch.cli import main\n"
        f"for line in {lines!r}:\n"
        "    *words, last = line.split(' ')\n"
        "    assert ShellComplete(main, {}, 'metasearch', 'X').get_completions(words, last), line\n"
        f"print([name for name in {SLOW!r} if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
