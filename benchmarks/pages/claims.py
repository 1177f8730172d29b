"""What `metasearch tune` claims, beside what questions about other pages show.

    python -m benchmarks.pages.claims --pages ~/data/pages --sets gnome,debian-faq --counts 40,128 --draws 0-9 -o runs/claims

A draw takes pages at random. Each of `count` / 2 pages has two labels, its titles in two of its languages, and names
the page in that language, as a log of clicks does. New questions are the titles of 60 other pages in all languages.
`--shuffled` gives each label the page of another one. Rows of `results/claims.jsonl` have scores of every step and
ranking; the tables of scores are kept in the output folder, `NAME.pickle`, to compare rules of choice.
"""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.pool import Query, read_queries
from metasearch.config.run import DEFAULT_ENCODER, EncoderConfig, TuneConfig
from metasearch.data.documents import read as reading
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.statistics.bounded import bounded_test
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.run import silent
from metasearch.pipelines.tune import job
from metasearch.pipelines.tune.choice import Choice
from metasearch.pipelines.tune.job import TuneRun
from metasearch.pipelines.tune.pages import Pages
from metasearch.pipelines.tune.steps import Step
from metasearch.pipelines.tune.table import Table
from metasearch.runs.callbacks import SILENT, Callback

ROWS = RESULTS / "claims.jsonl"
NEW = 60
"""Pages that new questions are about."""
_SEARCHED = 2000


class Claim(TuneRun):
    """A tuning that scores new questions with every step, in place of saving a model and an index."""

    asked: RetrievalData
    """New questions, as labels."""
    table: Table
    fresh: Table
    chosen: Choice

    def _work(self, callback: Callback) -> None:
        self.chosen = self._compare(callback)
        self.table = Table.read(self.files)
        self.fresh = self._score_new([line for line in self.table.lines if not line[0].shuffled], callback)

    def _score_new(self, lines: list[tuple[Step, Any]], callback: Callback) -> Table:
        config, everything = self.config, self.labels.hold_out(None)
        found = Pages.of(self.asked, self.passages, config.documents, _SEARCHED, config.same_page)
        test = replace(found.data, candidates=(*found.data.candidates, *found.unlabelled))
        results = {}
        for step in dict.fromkeys(step for step, _ in lines):
            plain = not step.learner and not step.projected
            made: TextEncoder = self.workshop.vectors if plain else self.workshop.make(step, everything, callback)
            pools = [pool for each, pool in lines if each == step]
            found_here = evaluate(CachedEncoder(made), test, everything.measures, pools)
            results[step, 0] = found_here.questions
        return Table.of(results, self.table.measure)

    @property
    def passages(self) -> list[Any]:
        """All passages of the documents."""
        return list(job.read(self.config.documents, job.cutting(self._index, self.encoder)[1]))


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--sets", default="gnome,debian-faq", show_default=True, help="Sets of pages.")
@click.option("--encoder", default=DEFAULT_ENCODER, show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--counts", default="40,128", show_default=True, help="Numbers of labels.")
@click.option("--draws", default="0-9", show_default=True, help="First and last draw.")
@click.option("--shuffled", is_flag=True, help="Give each label the page of another one.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of tunings.")
def main(pages: Path, sets: str, encoder: str, counts: str, draws: str, shuffled: bool, output: Path) -> None:
    """Tune on labels of each draw, ask new questions, and keep a row of each."""
    first, last = map(int, draws.split("-"))
    for draw in range(first, last + 1):
        for name in sets.split(","):
            for count in map(int, counts.split(",")):
                measure(pages, name, encoder, count, draw, shuffled, output)


def measure(pages: Path, name: str, encoder: str, count: int, draw: int, shuffled: bool, output: Path) -> None:
    """Make one tuning and append its row, unless there is one."""
    facts: Row = {"set": name, "count": count, "draw": draw, "shuffled": shuffled, "encoder": Path(encoder).name}
    if any(all(row[key] == value for key, value in facts.items()) for row in read_rows(output / "claims.jsonl")):
        return
    labels, asked = drawn(read_queries(pages / "queries" / f"{name}.jsonl"), count, draw, shuffled)
    folder = output / f"{name}-{count}-{draw}{'-shuffled' * shuffled}"
    documents = str((pages / name).resolve())
    config = TuneConfig(encoder=EncoderConfig(name=encoder), documents=(documents,), seed=draw)
    run = Claim(config, folder, load_labels(list(labels), named=True))
    run.asked = load_labels(list(asked), named=True)
    job.read = _read_once  # type: ignore[assignment]
    with silent("claims"):
        run.load_data()
        run.load_encoders()
        run.files = run.files.create(folder, config, "", {})
        with run.files.held(0):
            run._start = __import__("time").monotonic()
            run._work(SILENT)
    folder.with_suffix(".pickle").write_bytes(pickle.dumps((facts, run.table, run.fresh)))
    append_rows(output / "claims.jsonl", [{**facts, **figures(run.chosen, run.fresh), **provenance()}])


@cache
def _passages(documents: tuple[str, ...], settings: Any) -> list[Any]:
    return list(reading.read(documents, settings))


def _read_once(documents: Any, settings: Any) -> list[Any]:
    return _passages(tuple(documents), settings)


def drawn(queries: list[Query], count: int, draw: int, shuffled: bool) -> tuple[Iterator[Row], Iterator[Row]]:
    """Return rows of labels, and rows of new questions about other pages."""
    random, own = Random(draw), dict[str, list[Query]]()
    for query in queries:
        own.setdefault(query.page, []).append(query)
    names = sorted(own)
    random.shuffle(names)
    labelled, new = names[: count // 2], names[count // 2 : count // 2 + NEW]
    others = [*labelled[1:], labelled[0]] if shuffled else labelled
    rows = [
        (query, other) for name, other in zip(labelled, others, strict=True) for query in random.sample(own[name], 2)
    ]
    return (_row(query, page) for query, page in rows), (_row(query, name) for name in new for query in own[name])


def _row(query: Query, page: str) -> Row:
    return {"query": query.text, "document": f"{query.language}/{page}.html", "language": query.language}


def figures(choice: Choice, fresh: Table) -> Row:
    """Return the claim, what new questions show of every line, and by language of what was kept."""
    kept, base = (choice.kept.step, choice.kept.pool), fresh.scores[0]
    line = fresh.lines.index(kept)

    def gain(number: int, there: Any = slice(None)) -> PairedTest:
        groups = np.array(fresh.groups)[there].tolist()
        return bounded_test(fresh.scores[number][there], base[there], groups, low=-1, high=1)

    languages = np.array([language for _, language, _ in fresh.places])
    return {
        "kept": str(choice.kept),
        "claim": _shown(choice.kept.gain),
        "new": _shown(gain(line)),
        "steps": {f"{step} | {pool}": _shown(gain(i)) for i, (step, pool) in enumerate(fresh.lines)},
        "base": round(100 * float(base.mean()), 2),
        "languages": {tag: _shown(gain(line, languages == tag)) for tag in sorted({*languages.tolist()})},
        "refused": dict(choice.refused),
    }


def _shown(test: PairedTest) -> list[float | None]:
    return [None if value is None else round(100 * value, 2) for value in (test.mean, test.low, test.high)]


if __name__ == "__main__":
    main()
