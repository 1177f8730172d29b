"""The build of metasearch-mini: its recipes, the steps, and the model card."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mini import assistants, build, card, distilled
from helpers.mini import MINI, small_data
from metasearch.config.library import load_distillation
from metasearch.errors import ConfigError


@pytest.fixture
def data(tmp_path):
    """Return a folder with a small file of each test set, and training texts of which two overlap."""
    return small_data(tmp_path / "data")


@pytest.mark.parametrize("name", [*assistants.RECIPES.values(), assistants.STATES])
def test_the_recipe_is_sound_and_its_stages_read_what_the_build_writes(name):
    recipe = load_distillation(name, include=[str(MINI)])
    assert recipe.student is None or recipe.student.bottleneck
    assert {name for stage in recipe.stages.values() for name in stage.corpus.only} <= {"corpus", "joined"}
    assert recipe.stages[recipe.chosen[-1]].trains == "student"


class Commands:
    """Stands for the command line: notes what is called, and makes what it would."""

    def __init__(self):
        self.called = []

    def __call__(self, *words):
        words = [str(word) for word in words]
        self.called.append(words)
        output = Path(words[words.index("-o") + 1] if "-o" in words else words[words.index("--resume") + 1])
        if words[0] == "evaluate":
            task = words[words.index("--task") + 1]
            row = {
                "task": task,
                "learner": "x",
                "measure": "spearman",
                "split": "test",
                "pool": "pairs",
                "language": "mean",
            }
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({**row, "value": 0.5, "versions": {}}) + "\n", encoding="utf-8")
        else:
            output.mkdir(parents=True, exist_ok=True)
            (output / ("report.md" if words[0] == "distill" else "made")).write_text("", encoding="utf-8")


@pytest.fixture
def commands(monkeypatch):
    """Return the stand-in of the command line; the card is left to its own test, and the corpus is small."""
    found = Commands()
    monkeypatch.setattr(build, "_held", lambda settings: 3)
    for module in (build, assistants, distilled):
        monkeypatch.setattr(module, "metasearch", found)
    monkeypatch.setattr(card, "render", lambda *arguments: "card")
    return found


def test_a_build_runs_its_steps_in_order_and_never_twice(data, commands, tmp_path):
    settings = build.Settings(str(data), tasks=("sts17",))
    build.build(settings, tmp_path / "out", "command")
    assert [words[0] for words in commands.called] == [
        "compress", "tokenizer", "distill", "export", "evaluate", "evaluate",
    ]  # fmt: skip
    english = (tmp_path / "out" / "english.txt").read_text(encoding="utf-8").splitlines()
    assert len(english) == len(set(english)) > 0
    assert str(tmp_path / "out" / "english.txt") in commands.called[0]
    assert (tmp_path / "out" / "mini" / "README.md").read_text(encoding="utf-8") == "card"
    build.build(settings, tmp_path / "out", "command")
    assert len(commands.called) == 6
    with pytest.raises(ConfigError, match="begun with seed 0, not 1"):
        build.build(replace(settings, seed=1), tmp_path / "out", "command")
