"""Stages of a distillation: each begins with what the last one made, and every recipe runs."""

import pytest

from helpers.parallel import FOLDERS, distill, events, flags, save_assistant, small, weights, write_corpus
from metasearch.config.library import Library


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus and an assistant."""
    folder = tmp_path_factory.mktemp("distillation")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    return folder


@pytest.mark.slow
def test_a_student_learns_what_the_last_layer_gives_at_every_token(place, tmp_path):
    """Of fewer layers and a narrower word table, its error is smaller after four steps."""
    chosen = small("student", options__output="states", options__target="own", monitor="accuracy", outer__lr=1e-3)
    distill(*flags(place, "--stages=3", *chosen, steps=4), "-o", tmp_path / "run")
    losses = [event["loss"] for event in events(tmp_path / "run" / FOLDERS[2]) if "loss" in event]
    assert losses[-1] < losses[0]


def _pairs(folder):
    labels = ("neutral", "entailment", "contradiction")
    lines = [
        f'{{"gold_label": "{labels[i % 3]}", "sentence1": "premise {i}", "sentence2": "hypothesis {i}"}}\n'
        for i in range(24)
    ]
    (folder / "nli.jsonl").write_text("".join(lines))
    (folder / "sts-en.csv").write_text("".join(f'"left {i}","right {i}",{i % 6}\n' for i in range(24)))
    return {"entailment": f"--entailment={folder / 'nli.jsonl'}", "scored": f"--scored={folder / 'sts-en.csv'}"}


def kinds_of(name):
    """Return the kinds of the stages of a recipe."""
    recipe = Library().distillation(name)
    made = bool(recipe.student)
    return {
        (made, stage.trains, bool(stage.against), stage.learner, stage.data, *map(stage.options.get, VARIED))
        for stage in recipe.stages.values()
    }


def different():
    """Return recipes that have every kind of stage: each has more new kinds than those after it."""
    kinds = {name: kinds_of(name) for name in Library().names("distillation")}
    found = []
    while missing := set().union(*kinds.values()).difference(*(kinds[name] for name in found)):
        found.append(max(kinds, key=lambda name: len(kinds[name] & missing)))
    return found


VARIED = ("output", "target", "contrast")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", different())
def test_every_kind_of_recipe_runs_to_its_end(place, tmp_path, recipe):
    declared = Library().distillation(recipe)
    corpora = [stage.corpus for stage in declared.stages.values()]
    named = {f"{name}-en-{code}" for corpus in corpora for name in corpus.only for code in corpus.languages or ("de",)}
    names = sorted(named) or ["en-de"]
    files = {"parallel": f"--corpus={write_corpus(tmp_path / 'corpus', names, count=30)}", **_pairs(tmp_path)}
    given = sorted({files[stage.data] for stage in declared.stages.values()})
    if declared.student:
        given += ["--teacher=tiny", f"--assistant={place / 'assistant'}"]
        given += ["--set=student.bottleneck=16", "--set=student.recurrent=2"]
    else:
        given += [f"--student={place / 'assistant'}"]
        given += [f"--teacher={place / 'assistant'}"] if any(s.against for s in declared.stages.values()) else []
    sizes = small(*declared.stages, corpus__dev=6, corpus__max_tokens=60)
    distill(f"--recipe={recipe}", *given, *sizes, "--max-steps=1", "-o", tmp_path / "run")
    ran = [path.name.partition("-")[2] for path in sorted((tmp_path / "run").glob("[0-9]-*"))]
    assert ran == list(declared.chosen)
    assert weights(tmp_path / "run") != (place / "assistant/model.safetensors").read_bytes()


@pytest.mark.slow
def test_the_rate_of_an_ema_teacher_fits_the_number_of_steps_where_it_is_scaled(place, tmp_path):
    """With K = 2 the scaled 1 - τ is min(1, 1e-5 · 105000 / 2) = 0.525, so that the teacher follows the student."""
    chosen = [f"--student={place / 'assistant'}", f"--corpus={place / 'corpus'}", "--max-steps=2"]
    shape = {"outer__lr": 5, "outer__trust": 1, "outer__warmup": 0, "corpus__max_tokens": 60}
    chosen += small("align", options__schedule="constant", **shape)
    first, second = (tmp_path / name for name in ("as-declared", "frozen"))
    distill("--recipe=ema-small", *chosen, "-o", first)
    distill("--recipe=ema-small", *chosen, "--set=stages.align.options.tau=1", "-o", second)
    losses = [[event["loss"] for event in events(run / "1-align") if "loss" in event] for run in (first, second)]
    assert losses[0][0] == losses[1][0]
    assert abs(losses[0][1] - losses[1][1]) > 0.01 * losses[1][1]
