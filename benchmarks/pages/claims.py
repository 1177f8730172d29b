"""What `metasearch tune` claims, beside what questions about other pages show.

    python -m benchmarks.pages.claims --pages ~/data/pages --counts 40,128 --draws 0-9 -o runs/claims

A draw takes pages at random. Each of `count` / 2 pages has two labels, its titles in two of its languages, and names
the page in that language, as a log of clicks does. New questions are the titles of 60 other pages in all languages.
`--shuffled` gives each label the page of another one. Rows of `results/claims.jsonl` have scores of every step and
ranking.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.pool import Query, read_queries
from metasearch.config.measure import Pool
from metasearch.config.run import DEFAULT_ENCODER, EncoderConfig
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import CachedEncoder
from metasearch.evaluation.scores import Evaluation
from metasearch.evaluation.statistics.paired import PairedTest
from metasearch.pipelines.run import silent
from metasearch.runs.callbacks import Callback
from metasearch.runs.markdown import markdown
from metasearch.runs.per_query_results import QueryResults
from metasearch.search.query.searcher import Searcher
from metasearch.search.settings import TuneConfig
from metasearch.search.tune import job
from metasearch.search.tune.adapt.job import Figure, score_apart
from metasearch.search.tune.adapt.searched import SearchedIndex
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.compare import Comparison
from metasearch.search.tune.job import TuneRun
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.max_t import bounded_test
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import Table, split_rankings
from metasearch.training.hardware import used

ROWS = RESULTS / "claims.jsonl"
NEW = 60
"""Pages that new questions are about."""
_ALL = 10**9


class Claim(TuneRun):
    """A tuning that scores new questions with every step, in place of saving a model and an index."""

    asked: RetrievalData
    """New questions, as labels."""
    table: Table
    fresh: Table
    chosen: Choice
    apart: tuple[Figure, ...] = ()
    """Gains of the kept adapter on new pages and on pages with labels, which a report prints, too."""

    def _work(self, callback: Callback) -> None:
        self._read_documents(callback)
        how = callback, self._note, self.limit
        self.comparison = Comparison.open(self, self.labels, self.encoder, self.documents.store, *how)
        self.chosen = self.comparison.choose()
        kept, searched = self.chosen.kept, self.comparison.workshop.searched
        if searched and kept.step.adapts:
            self.apart = score_apart(searched, self.labels, kept.step, kept.pool)
        self.table = Table.read(self.files)
        self.fresh = self._score_new([line for line in self.table.lines if not line[0].shuffled], callback)
        self.files.finish(str(self.chosen), used(self.seconds, self.encoder.device))

    def _score_new(self, lines: list[tuple[Step, Pool]], callback: Callback) -> Table:
        whole, workshop, how = self.labels.hold_out(None), self.comparison.workshop, self.config
        store = self.documents.store
        assert store is not None
        assert workshop.searched is not None
        test = Labels.on_index(store, self.asked, 0, how.same_page, _ALL, how.documents)[0].everything
        fresh = replace(whole, split=replace(whole.split, test=test))
        asked = SearchedIndex.of(Searcher(store, self.encoder), test)
        asked = replace(asked, queries={**workshop.searched.queries, **asked.queries})
        workshop = replace(workshop, searched=asked)
        pools = {step: [pool for each, pool in lines if each == step] for step, _ in lines}
        scores = {step: workshop.score(step, fresh, own, callback) for step, own in pools.items()}
        return Table.of({(step, 0): join(each) for step, each in scores.items()}, whole.task.monitor)


def join(found: Mapping[Pool, Evaluation]) -> QueryResults:
    """Return the scores in all pools."""
    return next(iter(split_rankings({pool: each.questions for pool, each in found.items()}).values()))


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
    share()
    first, last = map(int, draws.split("-"))
    for draw in range(first, last + 1):
        for name in sets.split(","):
            for count in map(int, counts.split(",")):
                facts: Row = {"set": name, "count": count, "draw": draw, "shuffled": shuffled}
                measure(pages, encoder, {**facts, "encoder": Path(encoder).name}, output)
    click.echo(table(read_rows(ROWS)))


def share() -> None:
    """Let all tunings of this process share one base encoder and its vectors."""
    bases: dict[str, Encoder] = {}

    def load_base(config: EncoderConfig, *args: Any, **options: Any) -> Encoder:
        if config.name not in bases:
            encoder = bases[config.name] = load_encoder(config, *args, **options)
            known = CachedEncoder(cast(Encoder, SimpleNamespace(encode=encoder.encode)))
            vars(encoder)["encode"] = known.encode
        return bases[config.name]

    vars(job).update(load_encoder=load_base)


def measure(pages: Path, encoder: str, facts: Row, output: Path) -> None:
    """Make one tuning and append its row, unless there is one."""
    if any(all(row[key] == value for key, value in facts.items()) for row in read_rows(output / "claims.jsonl")):
        return
    name, draw = facts["set"], facts["draw"]
    labels, asked = drawn(read_queries(pages / "queries" / f"{name}.jsonl"), facts["count"], draw, facts["shuffled"])
    folder = output / "-".join(str(value) for value in facts.values())
    config = TuneConfig(encoder=EncoderConfig(name=encoder), documents=(str((pages / name).resolve()),), seed=draw)
    run = Claim(config, folder, load_labels(list(labels), named=True))
    run.asked = load_labels(list(asked), named=True)
    if folder.exists():  # of a draw that was stopped
        run.began = run.files.stored(TuneConfig)
    run.execute(silent)
    apart = {figure.name: _shown(figure.gain) for figure in run.apart}
    row = {**facts, **figures(run.chosen, run.fresh), "apart": apart, **provenance()}
    append_rows(output / "claims.jsonl", [row])
    append_rows(ROWS, [row])


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
    alone = fresh.lines.index((replace(choice.kept.step, learner=""), choice.kept.pool))
    return {
        "first": str(choice.standings[0]),
        "kept": str(choice.kept),
        "claim": _shown(choice.kept.gain),
        "new": _shown(gain(line)),
        "ranking": _shown(gain(alone))[0],
        "steps": {f"{step} | {pool}": _shown(gain(i)) for i, (step, pool) in enumerate(fresh.lines)},
        "base": round(100 * float(base.mean()), 2),
        "languages": {tag: _shown(gain(line, languages == tag)) for tag in sorted({*languages.tolist()})},
        "refused": dict(choice.refused),
    }


def table(rows: Sequence[Row]) -> str:
    """Return how claims hold for new questions.

    Columns: tunings that keep the search without labels; claims whose interval has the new gain, of the gain on new
    pages where it is printed apart; the new gain; how far the best step is above the kept one; tunings that are
    significantly worse in a language.
    """
    lines = []
    for (name, count, shuffled), own in _grouped(rows).items():
        held = sum(_within(row) for row in own)
        behind = np.mean([max(gain for gain, *_ in row["steps"].values()) - row["new"][0] for row in own])
        harmed = sum(any(high is not None and high < 0 for _, _, high in row["languages"].values()) for row in own)
        gain = np.mean([row["new"][0] for row in own])
        kept = sum(row["kept"] == row["first"] for row in own)
        cells = (f"{kept}/{len(own)}", f"{held}/{len(own)}", f"{gain:+.1f}", f"{behind:.1f}", f"{harmed}")
        lines.append([f"{name}, {count} {'shuffled' if shuffled else 'right'} labels", *cells])
    head = ["labels", "nothing kept", "claim holds", "new gain", "best less kept", "harmed"]
    return markdown(head, lines)


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, int, bool], list[Row]]:
    found: dict[tuple[str, int, bool], list[Row]] = {}
    keys = "set", "shuffled", "count", "draw"
    for row in sorted(rows, key=lambda row: tuple(row[key] for key in keys)):
        found.setdefault((row["set"], row["count"], row["shuffled"]), []).append(row)
    return found


def _within(row: Row) -> bool:
    """Return whether the gain on new questions is in the interval of the claim, or of that on new pages."""
    if printed := row.get("apart", {}).get("new pages"):  # against the same ranking without the adapter
        (_, low, high), new = printed, row["new"][0] - row["ranking"]
    else:
        (_, low, high), new = row["claim"], row["new"][0]
    return bool(row["claim"][0] == new if low is None else low <= new <= high)


def _shown(test: PairedTest) -> list[float | None]:
    return [None if value is None else round(100 * value, 2) for value in (test.mean, test.low, test.high)]


if __name__ == "__main__":
    main()
