"""LAReQA's evaluation once the vectors are there: ours against the loops that it replaces.

Ours (`evaluate_retrieval`) gives mAP@20 and mAP of each question, and what a run keeps of its ranking. The others give
one figure, on some of the questions, and their time is scaled to all:

- `authors`: the paper's zero-shot loop, re-made from `spec/maml_align.md` §9, items 10 and 13: relevance by `uuid in
  list` over all candidates, a product for each question, the whole ranking walked in Python with `in` on an array.
  As written, without a cut-off.
- `authors@20`: the same with k = 20.
- `lareqa`: a question at a time in numpy, as `mean_avg_prec_at_k` of LAReQA does it, k = 20.
- `pytrec_eval`: scores in dictionaries, sorted and measured by trec_eval (`map_cut_20`).

Every way takes its turn in each round, on other questions than in the round before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

from benchmarks.common.clock import Seconds, clock
from benchmarks.speed.targets import row
from metasearch.config.measure import RERANKED, RETRIEVAL_POOLS, Measure, Pool
from metasearch.config.seeding import stream
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import MetasearchError
from metasearch.evaluation.evaluate import evaluate_retrieval

POOLS = tuple(pool for pool in RETRIEVAL_POOLS if pool not in RERANKED)
"""Pools that one product scores."""
MEASURES = (Measure("map", 20), Measure("map"))
TARGET = 100.0
"""How many times as long the authors' loop takes, at least."""
SIGNAL = 0.5
"""Length of what a question has in common with its answers, beside noise of length 1."""
_CLOSE = 1e-4
"""How far mAP may differ: the loops multiply by one question at a time, which rounds differently."""


T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """Widths of the vectors, and how many questions each of the slow ways is timed on."""

    widths: tuple[int, ...]
    questions: Mapping[str, int]


SCALES = {
    "full": Scale((384, 768), {"authors": 40, "authors@20": 200, "lareqa": 200, "pytrec_eval": 100}),
    "small": Scale((8,), {"authors": 3, "authors@20": 3, "lareqa": 3, "pytrec_eval": 3}),
}


class Given:
    """An encoder of which the vectors are given: noise, and what a question and its answers have in common."""

    def __init__(self, data: RetrievalData, width: int) -> None:
        rng = stream(0, "vectors", width)
        self.questions = list(data.questions)
        ids = {q: i for i, q in enumerate(dict.fromkeys(question.id for question in data.questions))}
        common = rng.standard_normal((len(ids), width))
        answers = np.zeros((len(data.candidates), width))
        for i, candidate in enumerate(data.candidates):
            answers[i] = sum((common[ids[q]] for q in candidate.answers if q in ids), answers[i])
        asked = common[[ids[question.id] for question in self.questions]]
        texts = {"question": [q.text for q in self.questions], "candidate": [c.text for c in data.candidates]}
        self._at = {role: {text: i for i, text in enumerate(listed)} for role, listed in texts.items()}
        self.vectors = {"question": _noisy(asked, rng), "candidate": _noisy(answers, rng)}
        # Some questions are the same text; it has one vector.
        self.vectors = {role: self.encode(listed, role) for role, listed in texts.items()}

    def encode(self, texts: Sequence[str], role: str) -> NDArray[np.float32]:
        """Return the vectors of some texts."""
        at = self._at[role]
        return self.vectors[role][[at[text] for text in texts]]


def evaluation_rows(scale: str, rounds: int, data: Path | None) -> list[dict[str, Any]]:
    """Time the evaluation and its peers.

    Args:
        scale: `full` or `small`.
        rounds: of all ways; the figures are their medians.
        data: a folder with `lareqa`; without one, data as large as LAReQA is made, or little in `small`.

    Returns:
        Rows of case `evaluation`, for each width of the vectors: seconds of ours, for the multilingual pool and for all
        pools, and of each peer the seconds and how many times as long as ours it takes.

    Raises:
        MetasearchError: a peer finds another mAP.
    """
    size = SCALES[scale]
    task = load_benchmark("lareqa", data=str(data)).data if data is not None else made(scale)
    assert isinstance(task, RetrievalData)
    shape = f"{len(task.questions)} questions, {len(task.candidates)} candidates"
    return [
        {**measured, "data": "real" if data else "generated", "pool": shape}
        for width in size.widths
        for measured in _rows(Given(task, width), task, width, rounds, size.questions)
    ]


def made(scale: str) -> RetrievalData:
    """Return data of LAReQA's structure: each question has one answer in each language."""
    asked, sentences, languages = (1190, 1173, 7) if scale == "full" else (12, 15, 3)
    codes = [f"l{i}" for i in range(languages)]
    questions = [Question(f"q{i}", code, f"{code} {i}?", f"{i}") for code in codes for i in range(asked)]
    of: dict[int, list[str]] = {}
    for i in range(asked):
        of.setdefault(i % sentences, []).append(f"q{i}")
    pool = [
        Candidate(f"{code}{i}", code, f"{code} {i}.", f"{i}", tuple(of.get(i, ())))
        for code in codes
        for i in range(sentences)
    ]
    return RetrievalData(tuple(questions), tuple(pool))


Loop = Callable[[Given, RetrievalData, Sequence[int]], list[float]]
"""Takes vectors, data and questions by their numbers; returns AP of each."""


def authors(k: int | None) -> Loop:
    """Return the paper's loop."""

    def loop(given: Given, data: RetrievalData, asked: Sequence[int]) -> list[float]:
        precisions = []
        candidates, uuids = given.vectors["candidate"], [list(c.answers) for c in data.candidates]
        for i in asked:
            scores = np.dot(candidates, given.vectors["question"][i])
            ranking = np.argsort(scores)[::-1]
            relevant = np.array([j for j, answered in enumerate(uuids) if given.questions[i].id in answered])
            total, hits = 0.0, 0
            for rank, candidate in enumerate(ranking if k is None else ranking[:k], 1):
                if candidate in relevant:
                    hits += 1
                    total += hits / rank
            precisions.append(total / (len(relevant) if k is None else min(len(relevant), k)))
        return precisions

    return loop


def lareqa(given: Given, data: RetrievalData, asked: Sequence[int]) -> list[float]:
    """Rank the candidates of a question at a time in numpy and look 20 deep."""
    values = []
    for i in asked:
        truth = np.array([given.questions[i].id in candidate.answers for candidate in data.candidates])
        scores = np.matmul(given.vectors["question"][i], given.vectors["candidate"].T)
        hits = truth[np.argsort(-scores)][:20]
        precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        values.append(float((precisions * hits).sum() / min(truth.sum(), 20)))
    return values


def trec(given: Given, data: RetrievalData, asked: Sequence[int]) -> list[float]:
    """Give trec_eval the scores of all candidates in dictionaries."""
    names = [f"c{j}" for j in range(len(data.candidates))]
    scores = given.vectors["question"][list(asked)] @ given.vectors["candidate"].T
    run = {f"q{i}": dict(zip(names, line.tolist(), strict=True)) for i, line in zip(asked, scores, strict=True)}
    judged: dict[str, dict[str, int]] = {f"q{i}": {} for i in asked}
    by_id: dict[str, list[str]] = {}
    for i in asked:
        by_id.setdefault(given.questions[i].id, []).append(f"q{i}")
    for name, candidate in zip(names, data.candidates, strict=True):
        for query in (query for answered in candidate.answers for query in by_id.get(answered, ())):
            judged[query][name] = 1
    measured = pytrec_eval.RelevanceEvaluator(judged, {"map_cut.20"}).evaluate(run)
    return [measured[f"q{i}"]["map_cut_20"] for i in asked]


LOOPS: dict[str, tuple[Loop, Measure]] = {
    "authors": (authors(None), Measure("map")),
    "authors@20": (authors(20), Measure("map", 20)),
    "lareqa": (lareqa, Measure("map", 20)),
    "pytrec_eval": (trec, Measure("map", 20)),
}


def _rows(
    given: Given, data: RetrievalData, width: int, rounds: int, questions: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the rows of a width."""
    seconds: dict[str, list[Seconds]] = {way: [] for way in ("multilingual", "all pools", *LOOPS)}
    order = stream(0, "timed").permutation(len(given.questions)).tolist()
    _timed(lambda: average_precisions(given, data, POOLS))  # the first time, memory is new
    for turn in range(rounds):
        values, taken = _timed(lambda: average_precisions(given, data, ("multilingual",)))
        seconds["multilingual"].append(taken)
        seconds["all pools"].append(_timed(lambda: average_precisions(given, data, POOLS))[1])
        for way, (loop, measure) in LOOPS.items():
            count = min(questions[way], len(order))
            asked = [order[(turn * count + i) % len(order)] for i in range(count)]
            peer_values, taken = _timed(lambda loop=loop, asked=asked: loop(given, data, asked))  # type: ignore[misc]
            _require_equal(way, measure, peer_values, [values[str(measure)][i] for i in asked])
            seconds[way].append(taken * len(order) / count)
    shape = f"D {width}"
    rows = [row("evaluation", shape, f"seconds, {way}", [wall for wall, _ in taken]) for way, taken in seconds.items()]
    for way in LOOPS:
        times = np.array(seconds[way]) / np.array(seconds["multilingual"])
        cpu = round(float(np.median(times[:, 1])), 3)
        times_row = row("evaluation", shape, f"times {way}", times[:, 0].tolist(), cpu=cpu, questions=questions[way])
        if way == "authors":
            times_row |= {"target": f">= {TARGET:g}", "holds": bool(times_row["value"] >= TARGET)}
        rows.append(times_row)
    return rows


def average_precisions(given: Given, data: RetrievalData, pools: Sequence[Pool]) -> dict[str, NDArray[np.float64]]:
    """Return AP of each question in the multilingual pool, in the order of the data, by measure."""
    kept = evaluate_retrieval(given, data, MEASURES, pools).questions  # type: ignore[arg-type]
    values = {str(measure): np.zeros(len(data.questions)) for measure in MEASURES}
    spoken = np.array([question.language for question in data.questions])
    for (name, pool, language, _), column in kept.columns.items():
        if pool == "multilingual":
            values[name][spoken == language] = column
    return values


def _require_equal(way: str, measure: Measure, values: Sequence[float], expected: Sequence[float]) -> None:
    theirs, ours = float(np.mean(values)), float(np.mean(expected))
    if abs(theirs - ours) > _CLOSE:
        raise MetasearchError(f"{way} finds {measure} {theirs:.6f} on {len(values)} questions, we find {ours:.6f}")


def _timed(run: Callable[[], T]) -> tuple[T, Seconds]:
    """Return a result and the seconds that it took, by the clock on the wall and by the processor."""
    began = clock()
    result = run()
    return result, clock() - began


def _noisy(signal: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return unit vectors that point where a signal does, as far as noise lets them."""
    noise = rng.standard_normal(signal.shape) / np.sqrt(signal.shape[1])
    lengths = np.linalg.norm(signal, axis=1, keepdims=True)
    vectors = noise + SIGNAL * signal / np.where(lengths > 0, lengths, 1)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
