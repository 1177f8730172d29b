"""What an index finds beside the unrounded vectors, and what BM25 adds, on LAReQA with the encoder `mini`.

    python -m benchmarks.speed.index_recall --data ~/data

Test part of fold 0. Recall@20 is the share of the 20 nearest candidates by float64 products of the encoder's vectors
that are among the 20 that the index finds. mAP@20 is that of `metasearch evaluate`, of the vectors, of BM25 over the
encoder's own tokens, and of both by reciprocal rank fusion of the first 100 of each; and of a neutral index, whose map
is estimated from the candidates it has, without questions.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.maps import estimate
from metasearch.evaluation.metrics.base import Ranks
from metasearch.evaluation.metrics.retrieval import average_precision
from metasearch.runs.markdown import markdown
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import FilePlaces, Kind, SourceFile
from metasearch.search.index.local import LocalStore
from metasearch.search.index.writer import writing

TOP = 20
DEPTH = 100
Vectors = NDArray[np.float32]


def write(folder: Path, data: RetrievalData, vectors: Vectors, encoder: Encoder) -> LocalStore:
    """Return an index of candidates, of which row i is candidate i."""
    hashes = [hashlib.sha256(candidate.id.encode()).digest()[:16] for candidate in data.candidates]
    keys = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 16)
    lines = np.arange(1, len(keys) + 1, dtype=np.int32)
    passages = [Passage(c.text, "lareqa", i + 1, c.language) for i, c in enumerate(data.candidates)]
    with writing(folder, Kind(encoder.name, encoder.fingerprint, vectors.shape[1])) as store:
        store.upsert(vectors, passages, keys)
        store.finish([FilePlaces(SourceFile("lareqa", 0, ""), keys, lines)])
    found = LocalStore.open(folder)
    assert len(found) == len(data.candidates)
    return found


def fuse(rankings: Sequence[NDArray[np.int64]], top: int, constant: int = 60) -> list[int]:
    """Return the best rows by the sum of 1 / (constant + rank): reciprocal rank fusion (Cormack et al. 2009)."""
    shares = np.concatenate([1 / (constant + np.arange(1, len(ranking) + 1)) for ranking in rankings])
    rows, which = np.unique(np.concatenate(rankings), return_inverse=True)
    scores = np.bincount(which, shares, minlength=len(rows)).astype(np.float32)
    return list(rows[np.lexsort((rows, -scores))[:top]].tolist())


def map_of(rankings: Sequence[Sequence[int]], data: RetrievalData) -> float:
    """Return mAP@20 of the rows that were found for each question, the mean over questions."""
    ranks, offsets = [], [0]
    for question, found in zip(data.questions, rankings, strict=True):
        place = {row: rank for rank, row in enumerate(found, 1)}
        relevant = [i for i, candidate in enumerate(data.candidates) if question.id in candidate.answers]
        # One that is not found ranks behind all that are.
        ranks += sorted(place.get(i, len(data.candidates) + n) for n, i in enumerate(relevant))
        offsets.append(len(ranks))
    return float(average_precision(Ranks(np.array(ranks), np.array(offsets)), TOP).mean())


def measure(data: RetrievalData, encoder: Encoder, place: Path) -> list[dict[str, Any]]:
    """Return recall of both kinds of index, plain and neutral, and mAP with and without BM25."""
    languages = np.array([candidate.language for candidate in data.candidates])
    vectors = encoder.encode([candidate.text for candidate in data.candidates], "candidate")
    asked = encoder.encode([question.text for question in data.questions], "question")
    neutral = estimate({tag: vectors[languages == tag] for tag in sorted(set(languages.tolist()))})
    near: dict[str, NDArray[np.int64]] = {}
    rows: list[dict[str, Any]] = []
    for kind, change in (("", lambda them: them), ("neutral ", lambda them: neutral(them).astype(np.float32))):
        ours, queries = change(vectors), change(asked)
        exact = np.argsort(-(queries.astype(np.float64) @ ours.astype(np.float64).T), axis=1, kind="stable")
        near[f"{kind}float64"] = exact[:, :DEPTH]
        index = write(place / f"{kind}int8", data, ours, encoder)
        near[f"{kind}int8"] = index.search(queries, DEPTH)[0][0]
        both = zip(exact[:, :TOP].tolist(), index.search(queries, TOP)[0][0].tolist(), strict=True)
        shared = float(np.mean([len({*a} & {*b}) / TOP for a, b in both]))
        rows.append({"way": f"{kind}int8", "metric": f"recall@{TOP}", "value": round(shared, 4)})
    asked = [question.text for question in data.questions]
    ranked = index.search_words(lambda texts: [row[0].tolist() for row in encoder.tokens(texts, "text")], asked, DEPTH)
    words = [found for found, _ in ranked]
    rankings = {way: found[:, :TOP].tolist() for way, found in near.items()}
    rankings["BM25"] = [found[:TOP].tolist() for found in words]
    for kind in ("int8", "neutral int8"):
        fused = (fuse([a, b], TOP) for a, b in zip(near[kind], words, strict=True))
        rankings[f"{kind} and BM25"] = list(fused)
    values = {way: round(map_of(found, data), 4) for way, found in rankings.items()}
    return rows + [{"way": way, "metric": f"mAP@{TOP}", "value": value} for way, value in values.items()]


def recall_table(rows: Sequence[Row]) -> str:
    """Return recall beside unrounded vectors, and mAP; a way to search a line, two columns for a task and encoder."""
    found = {(row["way"], row["task"], row["encoder"], row["metric"]): row["value"] for row in rows}
    columns = list(dict.fromkeys((row["task"], row["encoder"], row["metric"]) for row in rows))
    lines = [
        [way, *(_value(column[-1], found.get((way, *column))) for column in columns)]
        for way in dict.fromkeys(row["way"] for row in rows if row["metric"].startswith("mAP"))
    ]
    return markdown(["", *(f"{metric}, {encoder} on {task}" for task, encoder, metric in columns)], lines, left=1)


def _value(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.2f}" if metric.startswith("mAP") else f"{value:.4f}"


@click.command(cls=Command)
@click.option("--data", envvar="METASEARCH_DATA", type=click.Path(path_type=Path), help="Parent of lareqa/.")
@click.option("--task", default="lareqa", show_default=True)
@click.option("--encoder", default="mini", show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=RESULTS / "index_recall.jsonl", help="Rows to add to."
)
def main(data: Path | None, task: str, encoder: str, output: Path) -> None:
    """Search the test part of fold 0 in an index of each kind, print the table, and keep the figures."""
    benchmark = load_benchmark(task, fold=0, data=str(data) if data else None)
    loaded = load_encoder(encoder, benchmark.task.max_length, device="cpu")
    with tempfile.TemporaryDirectory() as place:
        rows = measure(benchmark.split.test, loaded, Path(place))
    counts = {"questions": len(benchmark.split.test.questions), "candidates": len(benchmark.split.test.candidates)}
    facts = {"task": task, "fold": 0, "encoder": encoder, **counts, "data": benchmark.data.fingerprint}
    append_rows(output, [{**row, **facts, **provenance()} for row in rows])
    shown = [[row["way"], row["metric"], f"{row['value']}"] for row in rows]
    click.echo(markdown(["way", "metric", "value"], shown, left=2))


if __name__ == "__main__":
    main()
