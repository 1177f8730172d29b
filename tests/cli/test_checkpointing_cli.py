"""`--checkpointing` of the commands that train: the same model, and a configuration that keeps the choice."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file

from metasearch.cli import main
from metasearch.config import yaml

ROOT = Path(__file__).parents[2]
TRAIN = [
    "train",
    "--mode",
    "trans",
    "--recipe",
    "maml-tiny",
    "--encoder",
    "tiny",
    "--device",
    "cpu",
    "--max-steps",
    "2",
]


def metasearch(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.slow
def test_a_run_has_the_same_model_with_and_without_and_keeps_the_choice(tmp_path):
    models = []
    for choice in ("layers", "off"):
        metasearch(*TRAIN, "--checkpointing", choice, "-o", tmp_path / choice)
        assert yaml.tree(tmp_path / choice / "config.yaml")["config"]["compute"]["checkpointing"] == choice
        models.append(load_file(tmp_path / choice / "model" / "model.safetensors"))
    layers, off = models
    assert layers.keys() == off.keys()
    assert all(weight.equal(off[name]) for name, weight in layers.items())


@pytest.mark.parametrize("command", ["train", "distill", "crossval"])
def test_every_command_that_trains_has_it(command):
    assert "--checkpointing [off|auto|layers|gradcache]" in " ".join(metasearch(command, "--help").output.split())


def times(precision, ways):
    """Return the least and the most CPU time of measured steps, as a multiple of the step without checkpointing."""
    text = (ROOT / "benchmarks" / "results" / "checkpointing.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    plain = {(row["shape"], row["k"], row["revision"]): row["cpu"] for row in rows if row["way"] == precision}
    found = [row["cpu"] / plain[row["shape"], row["k"], row["revision"]] for row in rows if row["way"] in ways]
    return f"{min(found):.1f} to {max(found):.1f} times"


def test_help_and_document_say_the_time_that_was_measured():
    fp32, bf16 = times("fast", ("checkpointing", "texts")), times("bf16", ("bf16 checkpointing",))
    document = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
    assert f"{fp32} the CPU time in float32, and {bf16} in bfloat16" in document
    assert f"{fp32} the CPU time in fp32" in " ".join(metasearch("train", "--help").output.split())
