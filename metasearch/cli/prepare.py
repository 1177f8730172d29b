"""`metasearch prepare`: clean a parallel corpus once, for distillations that read it from the disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import library, print_result
from metasearch.config.distillation import STAGE_SETTINGS, CorpusSettings
from metasearch.errors import ConfigError, nearest, quoted

if TYPE_CHECKING:
    from metasearch.data.overlap import TestSet


@_options.command("prepare")
@click.argument("corpus", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options.output("Folder of the prepared corpus.", required=True, metavar="PREPARED")
@_options.settings(CorpusSettings, without=STAGE_SETTINGS)
@click.option("--dedup-global", "across", is_flag=True, help="Drop duplicates across files, too.")
@click.option(
    "--detect", cls=_options.ListOption, metavar="all|TAGS",
    help="Drop pairs with a side in another language, detected among these, such as de,en,fr.",
)  # fmt: skip
@click.option(
    "--exclude", multiple=True, metavar="TASK|FILE",
    help="Drop texts that are in this test set; repeatable.",
)  # fmt: skip
@click.option(
    "--jobs", "processes", type=click.IntRange(min=1), default=1, show_default=True,
    help="Processes; each cleans a file at a time.",
)  # fmt: skip
@_options.options_group(_options.data, _options.include, _options.as_json("the counts"))
def command(corpus: tuple[Path, ...], output: Path, detect: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Clean translations in CORPUS (files and folders) and write PREPARED, for `distill --corpus`.

    CORPUS has files such as en-de.tsv, en-de.parquet and Moses pairs such as WikiMatrix.de-en.de, also compressed with
    gzip, folders that `datasets` saved, and names such as hub:ORG/NAME/en-de. PREPARED is a folder for
    `datasets.load_from_disk`. PREPARED/report.json counts dropped lines. A stopped command starts from the beginning.

    \b
    Examples:
      metasearch prepare ~/data/opus -o prepared --jobs 8 --dedup-global
      metasearch prepare hub:sentence-transformers/parallel-sentences-talks/en-de -o talks
      metasearch prepare ~/data/parallel -o prepared --exclude lareqa --exclude tatoeba --data ~/data --detect all
    """
    from metasearch.data.parallel.prepare import prepare_corpus
    from metasearch.runs.progress import ProgressBar

    settings = _options.tree(CorpusSettings, asked)
    tests = _test_sets(asked["exclude"], asked["include"], asked["data"])
    how = {"detect": detect, "across": asked["across"], "processes": asked["processes"]}
    with ProgressBar("prepare") as bar:
        done = prepare_corpus(corpus, output, settings, exclude=tests, progress=bar.on_count, **how)
    totals = {name: done[name] for name in ("lines read", "pairs kept", "lines dropped", "bytes")}
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in done["dropped"].items()) or "none"
    text = (
        f"lines read: {done['lines read']:,}\ndropped: {dropped}\npairs: {done['pairs kept']:,}\n"
        f"report: {output / 'report.json'}\ntrain: metasearch distill --corpus {quoted(output)}"
    )
    print_result(as_json, {"corpus": str(output), **totals}, text)


def _test_sets(names: Sequence[str], include: Sequence[str], data: str | None) -> "list[TestSet]":
    from metasearch.data.benchmark import build
    from metasearch.data.overlap import set_of, set_of_file

    declared, found = library(include), []
    tasks = declared.names("task")
    for name in dict.fromkeys(names):
        if name in tasks:
            found.append(set_of(name, build(declared.scored(name, {"include": include, "data": data})).data))
        elif Path(name).exists():
            found.append(set_of_file(Path(name)))
        else:
            raise ConfigError(f"--exclude {name}: neither a file nor a task.{nearest(name, tasks)}")
    return found
