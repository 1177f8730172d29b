"""The build of metasearch-mini: its recipe, that a stopped one goes on, and the model card."""

import importlib
import json
from pathlib import Path

import pytest

from helpers.formats import read, task
from helpers.mini import MINI, small_data, written
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import ConfigError, DataError
from metasearch.spec.library import load_distillation


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of the folder."""
    monkeypatch.syspath_prepend(str(MINI))
    return importlib.import_module


@pytest.fixture
def data(tmp_path):
    """Return a folder with a small file of each test set, and training texts of which two overlap."""
    return small_data(tmp_path / "data")


def test_the_recipe_is_sound_and_its_stages_read_what_the_build_writes():
    recipe = load_distillation("mini", include=[str(MINI)])
    assert recipe.student.bottleneck
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
def commands(script, monkeypatch):
    """Return the stand-in of the command line; the card is left to its own test, and the corpus is small."""
    found = Commands()
    monkeypatch.setattr(script("build"), "_held", lambda: 3)
    monkeypatch.setattr(script("build"), "metasearch", found)
    monkeypatch.setattr(script("card"), "render", lambda *arguments: "card")
    return found


def test_a_build_runs_its_steps_in_order_and_never_twice(script, data, commands, tmp_path):
    build = script("build")
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
        build.build(build.replace(settings, seed=1), tmp_path / "out", "command")


def test_a_stopped_distillation_goes_on(script, data, commands, tmp_path):
    build = script("build")
    run = tmp_path / "out" / "distill"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("", encoding="utf-8")
    build.build(build.Settings(str(data), tasks=(), compare=False), tmp_path / "out", "command")
    assert ["distill", "--resume", str(run)] in commands.called


def test_texts_of_a_corpus_without_a_known_licence_are_refused(script, data, commands, tmp_path):
    written(data / "parallel", el=["a\tb\tntrx"])
    with pytest.raises(
        DataError, match=r"corpus 'ntrx' is not in sources\.yaml: no licence is known\. Did you mean 'ntrex'"
    ):
        script("build").build(script("build").Settings(str(data)), tmp_path / "out", "command")
    assert commands.called == []


def test_the_card_counts_pairs_by_corpus_and_language_and_means_by_task_and_encoder(script):
    card = script("card")
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


def test_the_card_is_made_of_the_build_alone(script, data, tmp_path, monkeypatch):
    card, joined = script("card"), script("joined")
    from metasearch.encoders.builtin import tiny
    from metasearch.spec.recipe import MaxLength

    monkeypatch.setattr(card, "load_encoder", lambda *arguments, **named: tiny.build(MaxLength(), 0))
    joined.make(data / "parallel", tmp_path / "joined", joined.Settings())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"\0" * 2_300_000)
    made = {"command": "build it", "seed": 7, "steps": None}
    text = card.render(data / "parallel", tmp_path / "joined", tmp_path / "model", [], made)
    front = text.split("---\n")[1]
    assert "language: [de, en]" in front
    assert "license: cc-by-sa-4.0" in front
    assert f"{tiny.build(MaxLength(), 0).parameter_count:,} parameters in 2.3 MB" in text
    assert "33 pairs of English" in text
    assert "Licence CC BY 2.0 FR" in text
    assert "Licence CC BY-SA 4.0" in text
    assert "TICO-19" not in text
    assert "build it\n```\n\nseed 7" in text


def test_candidates_without_their_paragraph_are_the_sentences_that_are_shown(tmp_path, real_data):
    whole = load_benchmark("lareqa", data=str(real_data))
    alone = load_benchmark("lareqa-sentences", data=str(real_data))
    assert alone.split.test.questions == whole.split.test.questions
    assert [c.text for c in alone.data.candidates] == [c.shown for c in whole.data.candidates]
    assert all(len(a.text) < len(w.text) for a, w in zip(alone.data.candidates, whole.data.candidates, strict=True))


def test_a_candidate_can_be_its_sentence_without_the_paragraph():
    whole = read("xquad-r")
    alone = whole.sentences()
    assert alone.questions == whole.questions
    assert [c.text for c in alone.candidates] == [c.shown for c in whole.candidates]
    assert [c.answers for c in alone.candidates] == [c.answers for c in whole.candidates]
    assert alone.fingerprint != whole.fingerprint
    with pytest.raises(ValueError, match="only a retrieval task has candidates"):
        task("csv", "de", "de-de", candidates="sentence")
