"""The one writer of result rows: an encoder's scores on a part of a task, with the facts that they depend on."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from metasearch.compress.onnx_encoder import OnnxEncoder
from metasearch.config.measure import RERANKED, RETRIEVAL_POOLS, Pool
from metasearch.config.roles import Role
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Data, RetrievalData
from metasearch.encoders.adapted import encoder_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import TextEncoder, report_progress
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import unanswered
from metasearch.io import cache_key, cached
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN, Row
from metasearch.runs.versions import processor, versions

log = logging.getLogger(__name__)

VectorsOf = Callable[[str], TextEncoder]
"""Part of the data → what gives the vectors of its texts."""


Scorable = Encoder | OnnxEncoder


class Scored(NamedTuple):
    """An encoder's scores on a part of a task: rows as in `results.jsonl`, and per-query results."""

    rows: list[Row]
    questions: QueryResults


@dataclass(frozen=True)
class Scorer:
    """Scores encoders; `facts` are facts of all rows, such as seed and recipe."""

    facts: Row = field(default_factory=dict)
    callback: Callback = SILENT

    def score(
        self,
        learner: str,
        encoder: Scorable,
        benchmark: Benchmark,
        split: str,
        pools: Sequence[Pool] = RETRIEVAL_POOLS[:1],
        **retrieval: Any,
    ) -> Scored:
        """Return an encoder's scores on a part of a task; `learner` is its name in the rows, such as `zero-shot`.

        `retrieval` are `reranker`, `rerank_top` and `depth` of `metasearch.evaluation.evaluate.evaluate`.
        """
        what, data = f"{learner} on {split} of {benchmark.task.name}", benchmark.part(split)
        rows, questions = self._measure(what, encoder, data, benchmark, pools, **retrieval)
        if reranker := retrieval.get("reranker"):
            about = {"reranker": reranker.name, "rerank_top": retrieval["rerank_top"]}
            rows = [{**row, **about} if row["pool"] == RERANKED else row for row in rows]
        facts = self._row_facts(learner, encoder, benchmark, split, data)
        if isinstance(encoder, Encoder) and encoder.precision != "float32":
            facts["precision"] = encoder.precision
        return Scored([{**facts, **row} for row in rows], questions)

    def add(
        self,
        files: RunFolder,
        learner: str,
        encoder: Encoder,
        benchmark: Benchmark,
        parts: Mapping[str, Data],
        vectors_of: VectorsOf | None = None,
        cache: Path | None = None,
    ) -> None:
        """Add an encoder's scores on parts of the data to a run's results, unless the run has them.

        On `test` a retrieval task is scored in all pools that have answers to its questions, and the results of each
        question are kept. `vectors_of`
        gives the encoder's vectors on a part in its place. Runs with the same weights and data share the scores in a
        `cache`.
        """
        task = benchmark.task.name
        known = scored(files, task, {str(measure) for measure in benchmark.measures})
        for split, data in parts.items():
            if (learner, split) in known:
                continue
            what = f"{learner} on {split} of {task}"
            pools = _answered(data, what) if split == "test" else RETRIEVAL_POOLS[:1]
            vectors = partial(vectors_of, split) if vectors_of else None
            compute = partial(self._measure, what, encoder, data, benchmark, pools, vectors=vectors)
            rows, questions = _cached_scores(cache, encoder, data, benchmark, pools, compute) if cache else compute()
            facts = self._row_facts(learner, encoder, benchmark, split, data)
            if split == "test":
                # Before the rows: a row in the results says that the results by question are there.
                questions.save(query_results_path(files.path, task, learner, split), facts)
            files.add_results({**facts, **row} for row in rows)

    def _row_facts(self, learner: str, encoder: Scorable, benchmark: Benchmark, split: str, data: Data) -> Row:
        of_task = {"task": benchmark.task.name, "encoder": encoder.name, "learner": learner, "fold": benchmark.fold}
        facts = {**of_task, **self.facts, "split": split}
        if encoder.origin:
            # Weights that are drawn from the seed of the row differ from seed to seed.
            facts |= {"weights": encoder.origin, **({"seeded": True} if encoder.seeded else {})}
        facts["lengths"] = limits(encoder, data)
        return facts | {"data": benchmark.data.fingerprint, "versions": versions()}

    def _measure(
        self,
        what: str,
        encoder: Scorable,
        data: Data,
        benchmark: Benchmark,
        pools: Sequence[Pool],
        vectors: Callable[[], TextEncoder] | None = None,
        **retrieval: Any,
    ) -> Scored:
        log.info("scoring %s: %s", what, data.describe())
        with report_progress(encoder, partial(self.callback.on_encode, what)):
            given = vectors() if vectors else encoder
            results = evaluate(given, data, benchmark.measures, pools, **retrieval)
        return Scored([{**row, "processor": processor()} for row in results.rows()], results.questions)


def _answered(data: Data, what: str) -> tuple[Pool, ...]:
    """Return the pools with an answer to each question, and log the others; the main one always stays."""
    lacking = unanswered(data, RETRIEVAL_POOLS[1:]) if isinstance(data, RetrievalData) else {}
    for pool, problem in lacking.items():
        log.warning("%s is not scored in pool '%s': %s", what, pool, problem)
    return tuple(pool for pool in RETRIEVAL_POOLS if pool not in lacking)


def _cached_scores(
    cache: Path,
    encoder: Encoder,
    data: Data,
    benchmark: Benchmark,
    pools: Sequence[Pool],
    compute: Callable[[], Scored],
) -> Scored:
    """Return scores from a cache, computed if no run with the same weights, data and versions has computed them."""
    about = {
        "weights": encoder.fingerprint,
        "limits": [*limits(encoder, data).values()],
        "data": data.fingerprint,
        "fold": benchmark.fold,
        "measures": [*map(str, benchmark.measures), *pools],
        "versions": versions(),
    }

    def make(folder: Path) -> None:
        rows, questions = compute()
        questions.save(folder / "queries.npz", about)
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")

    folder = cached(cache_key(about), make, cache)
    rows = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    return Scored(rows, load(folder / "queries.npz")[0])


def limits(encoder: Scorable, data: Data) -> dict[str, int]:
    """Return role → tokens at which an encoder cuts texts, for the roles in a kind of data."""
    roles: tuple[Role, ...] = ("candidate", "question") if isinstance(data, RetrievalData) else ("text",)
    return {role: encoder.limit(role) for role in roles}


def with_lengths(encoder: Encoder, benchmark: Benchmark) -> Encoder:
    """Return an encoder with the same weights and a task's lengths, which may differ from its training."""
    own = encoder_of(encoder.whole, encoder.name, benchmark.task.max_length)
    own.origin, own.seeded = encoder.origin, encoder.seeded
    return own


def scored(files: RunFolder, task: str, measures: Collection[str]) -> set[tuple[str, str]]:
    """Return learner and split whose results have the mean of every measure on a task."""
    rows = [row for row in files.results() if (row["task"], row["language"]) == (task, MEAN)]
    means = {(row["learner"], row["split"], row["measure"]) for row in rows}
    return {(learner, split) for learner, split, _ in means if all((learner, split, m) in means for m in measures)}
