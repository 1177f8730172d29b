"""Rebuilds metasearch-mini, the built-in multilingual encoder, from the published data.

    python -m benchmarks.mini.build --data ~/data -o runs/mini
    python -m benchmarks.mini.build --data ~/data -o /tmp/mini --smoke     # all steps in a few minutes; of no use

corpus/          the training texts without those of test sets, and overlap.md
joined/          longer texts made of them
english.txt      the English side of the corpus, which the teacher knows
narrow/          the teacher with narrower layers
assistant/       the same with a vocabulary learned from the corpus
distill/         the run of recipe `mini`
mini/            the encoder in int8, and README.md, its model card
scores/          of the encoder as it is stored, and of the teacher
build.json       what it is made with

A step that is finished is not done again, and a stopped distillation goes on. With other options choose another folder.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from benchmarks.common.command import Command, metasearch
from benchmarks.mini import card, joined, overlap
from benchmarks.mini.corpus_lines import read_lines, write_lines
from metasearch.compress.output import whole
from metasearch.errors import ConfigError
from metasearch.spec.library import load_distillation

HERE = Path(__file__).parent
RECIPE = "mini"
TASKS = ("tatoeba-11", "sts17", "lareqa", "lareqa-sentences")
TEACHER = ("all-MiniLM-L6-v2", "minilm")


@dataclass(frozen=True)
class Settings:
    """What the encoder is made with; kept in `build.json`.

    Attributes:
        data: folder of the data sets, with `parallel/`.
        seed: of joins, vocabulary, students and batches.
        vocabulary: tokens.
        feed_forward: neurons in the feed-forward block of each layer of the assistant.
        share: joined lines for each line of a corpus of long texts.
        others: the same for each line of the other corpora.
        lines: lines of each file that are used, the first ones; 0 uses all.
        targets: folder of the teacher's vectors, which several builds may share; None keeps them in the build.
        steps: of each stage, at most; None leaves it to the recipe.
        device: where the teacher and its students run.
        precision: of its forward passes.
        compare: whether the teacher is scored, too.
        tasks: what the encoder is scored on.
    """

    data: str
    seed: int = 0
    vocabulary: int = 32000
    feed_forward: int = 512
    share: float = 1.0
    others: float = 0.05
    lines: int = 0
    targets: str | None = None
    steps: int | None = None
    device: str = "auto"
    precision: str = "fp32"
    compare: bool = True
    tasks: tuple[str, ...] = TASKS

    def smoke(self) -> "Settings":
        """Return the settings of a build that only shows that every step works."""
        return replace(self, lines=400, vocabulary=2000, steps=2, compare=False, tasks=("tatoeba-11", "sts17"))


@dataclass(frozen=True)
class Step:
    """A step of the build.

    Attributes:
        done: what is there when it is finished.
        run: does it.
    """

    done: Path
    run: Callable[[], None]


def plan(settings: Settings, out: Path) -> Iterator[Step]:
    """Yield the steps of a build, in their order."""
    data = Path(settings.data)
    texts = data / "parallel"
    if settings.lines:
        texts = out / "first-lines"
        yield Step(texts, lambda: _first_lines(data / "parallel", texts, settings.lines))
    corpus, longer, english = out / "corpus", out / "joined", out / "english.txt"
    yield Step(corpus, lambda: click.echo(overlap.check(data, texts, corpus)[0]))
    how = joined.Settings(settings.share, settings.others, seed=settings.seed)
    yield Step(longer, lambda: click.echo(joined.make(corpus, longer, how, _held())))
    yield Step(english, lambda: _english(corpus, english))
    narrow, assistant, run = out / "narrow", out / "assistant", out / "distill"
    yield Step(narrow, lambda: metasearch(
        "compress", TEACHER[1], "--feed-forward", settings.feed_forward, "--texts", english, "--seed", settings.seed,
        "--device", settings.device, "-o", narrow))  # fmt: skip
    yield Step(assistant, lambda: metasearch(
        "tokenizer", corpus, "--size", settings.vocabulary, "--lowercase", "--encoder", narrow,
        "--seed", settings.seed, "-o", assistant))  # fmt: skip
    yield Step(run / "report.md", lambda: _distill(settings, out))
    model = out / RECIPE
    yield Step(model, lambda: metasearch("export", run / "model", "--int8", "-o", model))
    encoders = {card.NAME: str(model), **(dict([TEACHER]) if settings.compare else {})}
    for (name, encoder), task in itertools.product(encoders.items(), settings.tasks):
        scores = out / "scores" / f"{name}-{task}.jsonl"
        yield Step(scores, lambda e=encoder, n=name, t=task, s=scores: _score(settings, e, n, t, s))


def build(settings: Settings, out: Path, command: str) -> Path:
    """Do all steps that are not finished, and write the card; returns the folder of the encoder.

    Args:
        settings: of the build.
        out: its folder.
        command: that the card names to repeat it.

    Raises:
        MetasearchError: the folder was begun with other settings, or data is missing or damaged.
        Exit: a command of metasearch failed.
    """
    _begin(settings, out)
    card.require_licensed({line.corpus for line in read_lines(Path(settings.data) / "parallel")}, Path(settings.data))
    for step in plan(settings, out):
        if not step.done.exists():
            click.echo(f"== {step.done.relative_to(out)}", err=True)
            step.run()
    made = {"command": command, "seed": settings.seed, "steps": settings.steps}
    scores = [out / "scores" / f"{name}-{task}.jsonl" for name in (card.NAME, TEACHER[0]) for task in settings.tasks]
    scored = [path for path in scores if path.exists()]
    text = card.render(out / "corpus", out / "joined", out / RECIPE, scored, made)
    (out / RECIPE / "README.md").write_text(text, encoding="utf-8")
    return out / RECIPE


def _begin(settings: Settings, out: Path) -> None:
    path, now = out / "build.json", json.loads(json.dumps(asdict(settings)))
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        for key, value in now.items():
            if key != "targets" and before.get(key) != value:
                raise ConfigError(
                    f"{out}: begun with {key} {before.get(key)}, not {value}; choose another folder with -o"
                )
    else:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


def _held() -> int:
    """Return the pairs of a language that a stage holds out, at most: no join may hold one of them."""
    return max(stage.corpus.dev for stage in load_distillation(RECIPE, include=[str(HERE)]).stages.values())


def _distill(settings: Settings, out: Path) -> None:
    run = out / "distill"
    if (run / "config.yaml").exists():
        metasearch("distill", "--resume", run)
        return
    flags: list[object] = ["--seed", settings.seed, "--device", settings.device, "--precision", settings.precision]
    if settings.targets:
        flags += ["--targets", settings.targets]
    if settings.steps:
        flags += ["--max-steps", settings.steps]
    metasearch(
        "distill", "--recipe", RECIPE, "--include", HERE, "--teacher", TEACHER[1], "--assistant", out / "assistant",
        "--corpus", out / "corpus", "--corpus", out / "joined", *flags, "-o", run,
    )  # fmt: skip


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


def _english(corpus: Path, path: Path) -> None:
    """Write the distinct English sentences of a corpus to a file, one a line."""
    texts = dict.fromkeys(line.source for line in read_lines(corpus))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    partial.rename(path)


def _first_lines(folder: Path, output: Path, count: int) -> None:
    with whole(output) as new:
        write_lines(new, (line for line in read_lines(folder) if line.number <= count))


@click.command(cls=Command)
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the data sets.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder of the build."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--share", type=click.FloatRange(min=0), default=1.0, show_default=True, help="See joined.py.")
@click.option("--others", type=click.FloatRange(min=0), default=0.05, show_default=True, help="See joined.py.")
@click.option("--targets", type=click.Path(), help="The teacher's vectors, for several builds; by default in this one.")
@click.option("--steps", type=click.IntRange(min=1), help="Of each stage, at most.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True)
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True)
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
