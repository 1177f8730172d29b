"""The build of metasearch-mini: its recipes, the steps, and the model card."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mini import assistants, build, card, distilled, joined
from helpers.mini import MINI, small_data
from metasearch.config.library import load_distillation
from metasearch.config.recipe import MaxLength
from metasearch.encoders.builtin import tiny
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


def test_the_card_counts_pairs_by_corpus_and_language_and_means_by_task_and_encoder():
    assert [
        [cell.strip() for cell in row.split("|")[1:-1]]
        for row in card.sizes({("ntrex", "de"): 1200, ("tico19", "el"): 3}).splitlines()
    ] == [
        ["pairs of English with", "de", "el"],
        ["-" * 21, "----:", "--:"],
        ["ntrex", "1,200", "0"],
        ["tico19", "0", "3"],
        ["all", "1,200", "3"],
    ]
    rows = [
        {"task": "t", "measure": "accuracy", "learner": name, "pool": pool, "language": "mean", "value": value}
        for name, pool, value in [("a", "xx-en", 0.1), ("a", "both", 0.25), ("b", "both", 0.5)]
    ]
    assert [cell.strip() for cell in card.means(rows).splitlines()[-1].split("|")[1:-1]] == [
        "t, accuracy",
        "25.00",
        "50.00",
    ]


def test_the_card_is_made_of_the_build_alone(data, tmp_path, monkeypatch):
    monkeypatch.setattr(card, "load_encoder", lambda *arguments, **named: tiny.build(MaxLength(), 0))
    joined.make(data / "parallel", tmp_path / "joined", joined.Settings())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"\0" * 2_300_000)
    made = {"command": "build it", "seed": 7, "steps": None, "recipe": "mini"}
    teacher = card.TEACHERS["e5"]
    text = card.render(data / "parallel", tmp_path / "joined", tmp_path / "model", [], teacher, made)
    front = text.split("---\n")[1]
    assert "language: [de, en]" in front
    assert "license: cc-by-sa-4.0" in front
    assert f"{tiny.build(MaxLength(), 0).parameter_count:,} parameters in 2.3 MB" in text
    assert "33 pairs of English" in text
    assert "Licence CC BY 2.0 FR" in text
    assert "Licence CC BY-SA 4.0" in text
    assert "TICO-19" not in text
    assert "base_model: intfloat/multilingual-e5-small" in front
    assert "Teacher, and where the layers begin: multilingual-e5-small (Wang et al. 2024, MIT)" in text
    assert "\n# metasearch-mini-e5\n" in text
    assert 'load_encoder("mini-e5")' in text
    assert "lower case" not in text
    assert "such as emoji and rare scripts, are unknown to it" in text
    assert "spelt as bytes" not in text
    assert "build it\n```\n\nseed 7" in text
