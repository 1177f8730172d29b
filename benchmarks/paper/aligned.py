"""Makes the encoder of the arms `aligned+…`: `e5`, of which translations learned the neutral vectors of their sources.

    python -m benchmarks.paper.aligned --task lareqa-sentences --data ~/data -o studies/aligned

lines/      lines of the corpora that --corpora names, by default FLORES-200, NTREX-128 and TICO-19
corpus/     those that stand in no test set, and overlap.md
words/      the task's texts, by which the vocabulary is cut; nothing else is read of them
trimmed/    `e5` with the words of both alone
neutral/    the same without the language in its vectors, by the texts of the corpus: teacher and student
run/        the run of recipe `align`
model/      the encoder: weights between those of neutral/ and of run/model

Alignment hurts the search within each language. `--share` averages the weights before and after it (Wortsman et al.
2022, "Robust fine-tuning of zero-shot models", equation 1). Labels repair the damage, so the default is the whole way.
The same command continues a stopped run. No label of the task is read. With other settings choose another folder.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

import metasearch as ms
from benchmarks.common.begun import begin
from benchmarks.common.command import Command, metasearch
from benchmarks.mini import card, overlap
from benchmarks.mini.averaging import average_encoders
from benchmarks.mini.corpus_lines import read_lines, write_lines
from benchmarks.mini.settings import Step
from metasearch.data.records import texts_of
from metasearch.errors import DataError, require_known
from metasearch.io.output import whole

ENCODER = "e5"
CORPORA = ("flores", "ntrex", "tico19")
"""Of whole sentences; `tatoeba` has short ones."""
SETS = ("budget.steps=640", "budget.epochs=4", "budget.eval_every=160")
SHARE = 1.0
"""Of the way from the weights before to those after; 0.25 is best where nothing is trained afterwards."""


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="Whose languages and words are kept.")
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of the data, with parallel/.")
@click.option(
    "--set", "assignments", multiple=True, default=SETS, show_default=True, metavar="KEY=VALUE", help="Of the stage."
)
@click.option("--share", type=click.FloatRange(0, 1), default=SHARE, show_default=True, help="Of the way to run/model.")
@click.option(
    "--corpora", default=",".join(CORPORA), show_default=True, help="Of parallel/, whose lines are learned from."
)
@click.option("--seed", default=0, show_default=True, help="Of the batches.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Of the stage.",
)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of all that is made.")
def main(
    task: str,
    data: Path,
    assignments: tuple[str, ...],
    share: float,
    corpora: str,
    seed: int,
    device: str,
    precision: str,
    output: Path,
) -> None:
    """Do all steps that are not finished."""
    settings = {"task": task, "data": str(data), "set": assignments, "share": share, "seed": seed, "device": device}
    named = _checked(corpora)
    settings |= {"precision": precision, **({} if named == sorted(CORPORA) else {"corpora": named})}
    begin(output / "settings.json", settings, free=("data", "device"))
    stage = [word for each in assignments for word in ("--set", f"stages.align.{each}")]
    stage += ["--seed", str(seed), "--device", device, "--precision", precision]
    for step in steps(task, data, named, stage, share, output):
        if not step.done.exists():
            click.echo(f"== {step.done.relative_to(output)}", err=True)
            step.run()
    click.echo(output / "model")


def steps(
    task: str, data: Path, corpora: Sequence[str], stage: Sequence[str], share: float, out: Path
) -> Iterator[Step]:
    """Yield the steps to the encoder, in their order; `stage` are further arguments of the distillation."""
    lines, corpus, words = (out / name for name in ("lines", "corpus", "words"))
    trimmed, neutral, run = (out / name for name in ("trimmed", "neutral", "run"))
    yield Step(lines, lambda: _lines(task, data, corpora, lines))
    yield Step(corpus, lambda: click.echo(overlap.check(data, lines, corpus), err=True))
    yield Step(words, lambda: _words(task, data, words))
    kept = ("--trim-vocab", corpus, "--trim-vocab", words)
    yield Step(trimmed, lambda: metasearch("compress", ENCODER, *kept, "-o", trimmed))
    yield Step(neutral, lambda: metasearch("neutralise", trimmed, "--texts", corpus, "-o", neutral))
    roles = ("--teacher", neutral, "--student", neutral)
    new = ["distill", "--recipe", "align", *roles, "--corpus", corpus, *stage, "-o", run]
    yield Step(run / "report.md", lambda: metasearch(*(["resume", run] if run.exists() else new)))
    yield Step(out / "model", lambda: average_encoders(str(neutral), str(run / "model"), share, out / "model"))


def _checked(corpora: str) -> list[str]:
    """Return the names of corpora, each of which has a licence that is known."""
    names = sorted({name.strip() for name in corpora.split(",")})
    for name in names:
        require_known("corpus", name, card.sources())
    return names


def _lines(task: str, data: Path, corpora: Sequence[str], path: Path) -> None:
    """Write the lines of some corpora in the languages of a task."""
    languages = ms.load_benchmark(task, data=str(data)).data.languages
    lines = [line for line in read_lines(data / "parallel") if line.language in languages]
    missing = set(corpora) - {line.corpus for line in lines}
    said = f"{data / 'parallel'}: no line of {', '.join(sorted(missing))} in the languages of {task}"
    if missing == set(corpora):
        raise DataError(said)
    if missing:
        click.echo(said, err=True)
    with whole(path) as new:
        write_lines(new, (line for line in lines if line.corpus in corpora))


def _words(task: str, data: Path, path: Path) -> None:
    """Write the texts of a task, a file of each language."""
    by_language: dict[str, list[str]] = {}
    for _, text, language in texts_of(ms.load_benchmark(task, data=str(data)).data):
        by_language.setdefault(language, []).append(" ".join(text.split()))
    with whole(path) as new:
        for language, texts in sorted(by_language.items()):
            (new / f"{language}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
