"""Multi-stage distillation and the moving teacher on real data, with the papers' ablations.

    python -m benchmarks.paper.distillation --corpus ~/data/parallel --data ~/data -o runs/distillation
    python -m benchmarks.paper.distillation --corpus ~/data/parallel --data ~/data -o runs/distillation --only ema

all-MiniLM-L6-v2 teaches. The assistant is the same encoder with a vocabulary learned from the corpus. Each study is one
command of the command line; one that is finished is not run again, one that was stopped goes on. Scores on Tatoeba (the
eleven languages of the corpus), STS 2017 and LAReQA are collected in `benchmarks/results/distillation.jsonl`.
"""

from pathlib import Path

import click

from benchmarks.common.command import Command, metasearch
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, read_rows
from benchmarks.paper.distillation_tables import stages_table
from metasearch.runs.rows import append_rows

OWN_TASKS = Path(__file__).resolve().parents[1] / "tasks"
TASKS = ("tatoeba-11", "sts17")

WITHOUT_MCL = ("--set", "stages.contrast.options.contrast=none")
ONCE = ("--set", "student.repeats=1")
CHAIN = "{out}/chain"
UNTAUGHT = ("--assistant", "{out}/vocabulary")
ASSISTANT = ("--assistant", "{out}/assistant/1-assistant/model")
TAUGHT = ("--student", "{out}/assistant/1-assistant/model")
STUDIES: dict[str, tuple[str, ...]] = {
    "assistant": ("compress-small", "--stages", "1", *UNTAUGHT),
    "chain": ("compress-small", "--stages", "2-4", *ASSISTANT, "--evaluate", "lareqa"),
    "without-mcl": ("compress-small", "--stages", "4", "--student", CHAIN + "/3-student/model", *WITHOUT_MCL),
    "without-recurrence": ("compress-small", "--stages", "2-4", *ASSISTANT, *ONCE),
    "single-stage": ("compress-small", "--stages", "4", *UNTAUGHT, "--set", "student.initial=random", *WITHOUT_MCL),
    "ema": ("ema-small", *TAUGHT),
    "ema-frozen": ("ema-small", *TAUGHT, "--set", "stages.align.options.tau=1"),
    "ema-fast": ("ema-small", *TAUGHT, "--set", "stages.align.options.tau=0.9999"),
}
"""Name → recipe and flags; `{out}` is the folder of the runs. A study may begin with what one above it made."""


@click.command(cls=Command)
@click.option("--corpus", type=click.Path(exists=True, path_type=Path), required=True, help="Parallel corpora.")
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the tasks' files.")
@click.option("--only", multiple=True, type=click.Choice(list(STUDIES)), help="Studies to run; by default all.")
@click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True, help="Of each stage, at most.")
@click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True)
@click.option("--vocabulary", type=int, default=32000, show_default=True, help="Tokens of the assistant.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the runs.")
def main(
    corpus: Path, data: Path, only: tuple[str, ...], steps: int, precision: str, vocabulary: int, output: Path
) -> None:
    """Run the studies, collect their scores and print the means."""
    output.mkdir(parents=True, exist_ok=True)
    if not (output / "vocabulary").exists():
        metasearch("tokenizer", str(corpus), "--size", str(vocabulary), "--lowercase", "--encoder", "minilm",
                   "-o", str(output / "vocabulary"))  # fmt: skip
    common = ["--teacher", "minilm", "--corpus", str(corpus), "--data", str(data), "--targets", str(output / "targets"),
              "--include", str(OWN_TASKS), "--max-steps", str(steps), "--precision", precision]  # fmt: skip
    for task in TASKS:
        common += ["--evaluate", task]
    for name in only or STUDIES:
        folder = output / name
        recipe, *flags = (part.format(out=output) for part in STUDIES[name])
        if not (folder / "report.md").exists():
            if (folder / "config.yaml").exists():
                metasearch("distill", "--resume", str(folder))
            else:
                metasearch("distill", "--recipe", recipe, *flags, *common, "-o", str(folder))
            rows = read_rows(folder / "results.jsonl")
            own = [{"study": name, "steps": steps, **row, **provenance()} for row in rows if row["language"] == "mean"]
            append_rows(RESULTS / "distillation.jsonl", own)
    finished = [name for name in STUDIES if (output / name / "report.md").exists()]
    rows = [{"study": name, **row} for name in finished for row in read_rows(output / name / "results.jsonl")]
    click.echo(stages_table(rows))


if __name__ == "__main__":
    main()
