"""Rebuilds metasearch-mini, the built-in multilingual encoder, from the published data.

    python -m benchmarks.mini.build --data ~/data -o runs/mini
    python -m benchmarks.mini.build --data ~/data -o /tmp/mini --smoke     # all steps in a few minutes; of no use
    python -m benchmarks.mini.build --data ~/data -o runs/mini-e5 --teacher e5    # of a multilingual teacher

corpus/          the training texts without those of test sets, and overlap.md
joined/          longer texts made of them
assistant/       what the student is made of, with a vocabulary of the corpus; and on the way to it,
  english.txt      of minilm: the English side of the corpus, which it knows
  narrow/          of minilm: the teacher with narrower layers
  trimmed/         of e5: the words of the corpus alone
  teacher/         of e5: the same without the language in its vectors
  vocabulary/      of e5: its most frequent words
  merged/          of e5: with fewer and narrower layers
  narrow/          of e5: with a narrower word table
  states/          of e5: the run of recipe `mini-e5-states`; the assistant has the language taken out of its vectors
distill/         the run of recipe `mini` or `mini-e5`
between/         of e5: weights between those of the assistant and of the student
mini/            the encoder in int8, and README.md, its model card
scores/          of the encoder as it is stored, and of the teacher
build.json       what it is made with

A step that is finished is not done again, and a stopped distillation goes on. With other options choose another folder.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.common.begun import begin
from benchmarks.common.command import Command, metasearch
from benchmarks.mini import card, joined, overlap
from benchmarks.mini.assistants import RECIPES, STATES, of_e5, of_minilm, teacher_of
from benchmarks.mini.averaging import average_encoders
from benchmarks.mini.corpus_lines import read_lines, write_lines
from benchmarks.mini.distilled import HERE, distil
from benchmarks.mini.settings import Settings, Step
from metasearch.config.library import load_distillation
from metasearch.io.output import whole

MODEL = "mini"


def plan(settings: Settings, out: Path) -> Iterator[Step]:
    """Yield the steps of a build, in their order."""
    data = Path(settings.data)
    texts = data / "parallel"
    if settings.lines:
        texts = out / "first-lines"
        yield Step(texts, lambda: _first_lines(data / "parallel", texts, settings.lines))
    corpus, longer, run, model = out / "corpus", out / "joined", out / "distill", out / MODEL
    yield Step(corpus, lambda: click.echo(overlap.check(data, texts, corpus)))
    how = joined.Settings(settings.share, settings.others, seed=settings.seed)
    yield Step(longer, lambda: click.echo(joined.make(corpus, longer, how, _held(settings))))
    yield from (of_minilm if settings.teacher == "minilm" else of_e5)(settings, out)
    yield Step(run / "report.md", lambda: _distill(settings, out))
    made = run / "model"
    if settings.teacher == "e5":
        made = out / "between"
        # What it knew before the last run is lost in it, in part: on dev of LAReQA half of the way is above both ends.
        ends = str(out / "assistant"), str(run / "model")
        yield Step(made, lambda: average_encoders(*ends, settings.alpha, made))
    yield Step(model, lambda: metasearch("export", made, "--int8", "-o", model))
    title = card.TEACHERS[settings.teacher].title
    encoders = {title: str(model), **(_compared(settings, out) if settings.compare else {})}
    for (name, encoder), task in itertools.product(encoders.items(), settings.tasks):
        scores = out / "scores" / f"{name}-{task}.jsonl"
        yield Step(scores, lambda e=encoder, n=name, t=task, s=scores: _score(settings, e, n, t, s))


def _compared(settings: Settings, out: Path) -> dict[str, str]:
    """Return the name in the card of each encoder that is scored beside the student, and where it is."""
    name = card.TEACHERS[settings.teacher].name
    own, teacher = {name: settings.teacher}, teacher_of(settings, out)
    return own if teacher == settings.teacher else {**own, f"{name}, neutral": teacher}


def build(settings: Settings, out: Path, command: str) -> Path:
    """Do all unfinished steps, and write the card, which names the command; return the folder of the encoder."""
    begin(out / "build.json", asdict(settings), free=("targets",))
    card.require_licensed({line.corpus for line in read_lines(Path(settings.data) / "parallel")}, Path(settings.data))
    for step in plan(settings, out):
        if not step.done.exists():
            click.echo(f"== {step.done.relative_to(out)}", err=True)
            step.run()
    recipe, teacher = RECIPES[settings.teacher], card.TEACHERS[settings.teacher]
    made = {"command": command, "seed": settings.seed, "steps": settings.steps, "recipe": recipe}
    names = (teacher.title, *_compared(settings, out))
    scores = [out / "scores" / f"{name}-{task}.jsonl" for name in names for task in settings.tasks]
    scored = [path for path in scores if path.exists()]
    text = card.render(out / "corpus", out / "joined", out / MODEL, scored, teacher, made)
    (out / MODEL / "README.md").write_text(text, encoding="utf-8")
    return out / MODEL


def _held(settings: Settings) -> int:
    """Return the pairs of a language that a stage holds out, at most: no join may hold one of them."""
    names = [RECIPES[settings.teacher], *([STATES] if settings.teacher == "e5" else [])]
    recipes = [load_distillation(name, include=[str(HERE)]) for name in names]
    return max(stage.corpus.dev for recipe in recipes for stage in recipe.stages.values())


def _distill(settings: Settings, out: Path) -> None:
    recipe = RECIPES[settings.teacher]
    # A recipe makes its student of an assistant, or takes it as it is.
    role = "assistant" if load_distillation(recipe, include=[str(HERE)]).student else "student"
    distil(settings, out, out / "distill", recipe, teacher_of(settings, out), **{role: out / "assistant"})


def _score(settings: Settings, encoder: str, name: str, task: str, path: Path) -> None:
    """Score an encoder on a task, under its own name."""
    raw = path.with_suffix(".partial")
    raw.unlink(missing_ok=True)
    metasearch("evaluate", "--task", task, "--encoder", encoder, "--data", settings.data, "--include",
               HERE.parent / "tasks", "--device", settings.device, "-o", raw)  # fmt: skip
    rows = [json.loads(line) for line in raw.read_text(encoding="utf-8").splitlines()]
    named = [{**row, "encoder": name, "learner": name} for row in rows]
    raw.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named), encoding="utf-8")
    raw.rename(path)


def _first_lines(folder: Path, output: Path, count: int) -> None:
    with whole(output) as new:
        write_lines(new, (line for line in read_lines(folder) if line.number <= count))


@click.command(cls=Command)
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the data sets.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder of the build."
)
@click.option("--teacher", type=click.Choice(list(RECIPES)), default="minilm", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--targets", type=click.Path(), help="The teacher's vectors, for several builds; by default in this one.")
@click.option("--steps", type=click.IntRange(min=1), help="Of each stage, at most.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True)
@click.option("--precision", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True)
@click.option("--smoke", is_flag=True, help="A few steps on a few lines, to see that everything works.")
def main(data: Path, output: Path, smoke: bool, **options: object) -> None:
    """Rebuild metasearch-mini."""
    settings = Settings(str(data.resolve()), **options)  # type: ignore[arg-type]
    # Where targets lie changes nothing of what is made.
    asked = {name: value for name, value in options.items() if name != "targets"}
    changed = [f"--{name} {value}" for name, value in asked.items() if value != getattr(Settings, name)]
    command = " ".join(["python -m benchmarks.mini.build --data ~/data -o runs/mini", *changed, *["--smoke"] * smoke])
    made = build(settings.smoke() if smoke else settings, output, command)
    click.echo(f"encoder: {made}")


if __name__ == "__main__":
    main()
