"""Gain and CPU time of fine-tuning in `metasearch tune` with fewer outer steps, or of the top layers alone.

    python -m benchmarks.pages.fine_tuning --pages ~/data/pages --counts 40,128 --draws 0-1 -o runs/fine-tuning

`benchmarks.pages.claims` draws labels and new questions. The index has the pages of a draw alone. A row of
`results/fine_tuning.jsonl` has mAP@20 by balanced scores for each new page, the mean of its questions.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, read_rows
from benchmarks.pages.claims import Claim, drawn
from benchmarks.pages.pool import read_queries
from metasearch.config.run import DEFAULT_ENCODER, EncoderConfig
from metasearch.data.labels import load_labels
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import TransformerInput
from metasearch.evaluation.statistics.paired import clustered_test
from metasearch.pipelines import factory
from metasearch.pipelines.run import silent
from metasearch.runs.callbacks import Callback
from metasearch.runs.markdown import markdown
from metasearch.search.settings import TuneConfig
from metasearch.search.tune import workshop
from metasearch.search.tune.compare import Comparison
from metasearch.search.tune.training import prepare
from metasearch.training.hardware import used

ROWS = RESULTS / "fine_tuning.jsonl"
BEFORE = "no training"
_MAKE = factory.make_learner


@dataclass(frozen=True)
class Way:
    """Fine-tuning of the top `layers` for some outer steps at a learning rate; 0 trains all layers and the words."""

    layers: int
    steps: int
    rate: float

    def __str__(self) -> str:
        what = f"top {self.layers} layers" if self.layers else "all layers"
        return f"{what}, {self.steps} steps, {self.rate:.1e}"

    def take(self) -> None:
        """Train all later tunings of this process in this way."""

        def prepare_way(*args: Any) -> Any:
            benchmark, recipe = prepare(*args)
            budget = recipe.budget.model_copy(update={"meta_train": self.steps})
            outer = recipe.outer.model_copy(update={"lr": self.rate})
            return benchmark, recipe.model_copy(update={"budget": budget, "outer": outer})

        vars(workshop).update(prepare=prepare_way)
        vars(factory).update(make_learner=lambda recipe, encoder: _MAKE(recipe, self.freeze(encoder)))

    def freeze(self, encoder: Encoder) -> Encoder:
        """Freeze the words and the layers below the top ones, and return the encoder."""
        backbone = TransformerInput(encoder.model[0]).backbone
        layers = backbone.encoder.layer
        for part in (backbone.embeddings, layers[: -self.layers]) if self.layers else ():
            part.requires_grad_(False)
        return encoder


class FineTuning(Claim):
    """A tuning that scores new questions without training, and after each way of fine-tuning on all labels."""

    ways: Sequence[Way]
    found: dict[str, tuple[dict[str, float], float]]
    """Way → mean score of the questions about each new page, and CPU seconds to train, encode and score."""

    def _work(self, callback: Callback) -> None:
        self._read_documents(callback)
        how = callback, self._note, self.limit
        self.comparison = Comparison.open(self, self.labels, self.encoder, self.documents.store, *how)
        trained = next(step for step in self.comparison.steps if step.trains)
        pools = self.labels.pools()
        self.found = {}
        for way in (None, *self.ways):
            if way:
                way.take()
            start = time.process_time()
            step = trained if way else self.comparison.steps[0]
            fresh = self._score_new([(step, pool) for pool in pools], callback)
            line = [str(pool) for _, pool in fresh.lines].index("balanced")
            own: dict[str, list[float]] = {}
            for group, score in zip(fresh.groups, fresh.scores[line].tolist(), strict=True):
                own.setdefault(Path(group).stem, []).append(100 * score)
            scores = {page: round(float(np.mean(each)), 2) for page, each in sorted(own.items())}
            self.found[str(way or BEFORE)] = scores, round(time.process_time() - start, 1)
        self.files.finish("", used(self.seconds, self.encoder.device))


@click.command(cls=Command)
@click.option("--pages", required=True, type=click.Path(path_type=Path), help="Folder of `benchmarks.pages.build`.")
@click.option("--sets", default="debian-reference,developers-reference", show_default=True, help="Sets of pages.")
@click.option("--encoder", default=DEFAULT_ENCODER, show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--counts", default="128", show_default=True, help="Numbers of labels.")
@click.option("--draws", default="0-1", show_default=True, help="First and last draw.")
@click.option("--ways", default="0/12/6e-5,0/6/1.2e-4", show_default=True, help="Layers, steps and rate of each.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder of tunings.")
def main(pages: Path, sets: str, encoder: str, counts: str, draws: str, ways: str, output: Path) -> None:
    """Fine-tune in each way on labels of each draw, ask new questions, and keep a row of each."""
    parts = [way.split("/") for way in ways.split(",")]
    own = [Way(int(layers), int(steps), float(rate)) for layers, steps, rate in parts]
    first, last = map(int, draws.split("-"))
    for name in sets.split(","):
        for count in map(int, counts.split(",")):
            for draw in range(first, last + 1):
                append_rows(ROWS, rows_of(pages, encoder, name, count, draw, own, output))
    click.echo(table(read_rows(ROWS)))


def rows_of(
    pages: Path, encoder: str, name: str, count: int, draw: int, ways: Sequence[Way], output: Path
) -> list[Row]:
    """Return a row of each way."""
    labels, asked = map(list, drawn(read_queries(pages / "queries" / f"{name}.jsonl"), count, draw, shuffled=False))
    named = {row["document"].partition("/")[2] for row in (*labels, *asked)}
    files = sorted(str(path.resolve()) for path in (pages / name).glob("*/*.html") if path.name in named)
    config = TuneConfig(encoder=EncoderConfig(name=encoder), documents=tuple(files), seed=draw)
    run = FineTuning(config, output / f"{name}-{count}-{draw}", load_labels(labels, named=True))
    run.asked, run.ways = load_labels(asked, named=True), ways
    run.execute(silent)
    facts = {"set": name, "count": count, "draw": draw, "encoder": Path(encoder).name, **provenance()}
    return [{**facts, "way": way, "seconds": seconds, "pages": scores} for way, (scores, seconds) in run.found.items()]


def table(rows: Sequence[Row]) -> str:
    """Return the gain of each way over no training, and over the first way in the same draws, with 95 % intervals."""
    found: dict[tuple[str, str, int], dict[str, dict[int, Row]]] = {}
    for row in rows:
        found.setdefault((row["encoder"], row["set"], row["count"]), {}).setdefault(row["way"], {})[row["draw"]] = row
    lines = []
    for (encoder, name, count), ways in sorted(found.items()):
        before, (first, *_) = ways.pop(BEFORE), ways
        for way, own in ways.items():
            both = {draw: row for draw, row in ways[first].items() if draw in own}
            against = "" if way == first else _gain(own, both)
            took, as_long = (sum(row["seconds"] for row in each.values()) for each in (own, both))
            facts = f"{encoder}, {name}, {count}", way, f"{len(own)}"
            lines.append([*facts, _gain(own, before), against, f"{took / as_long:.2f}"])
    return markdown(["encoder, labels", "way", "draws", "gain", "over the first way", "CPU time"], lines, left=2)


def _gain(own: Mapping[int, Row], other: Mapping[int, Row]) -> str:
    """Return the mean gain for a page with its interval; one that is new in several draws is one cluster."""
    scores, before = ([value for draw in own for value in each[draw]["pages"].values()] for each in (own, other))
    test = clustered_test(scores, before, [page for row in own.values() for page in row["pages"]])
    return f"{test.mean:+.1f} [{test.low:+.1f}, {test.high:+.1f}]"


if __name__ == "__main__":
    main()
