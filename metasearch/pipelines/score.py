"""`score`: an encoder as it is, on dev and test of a fold, in a run folder; and how any run adds its scores.

There is no command of this name: cells of a study are such runs, and `metasearch resume` goes on with one.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config.measure import RETRIEVAL_POOLS, Pool
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.recipe import ZERO_SHOT, Role
from metasearch.config.run import Precision, RunConfig, ScoreConfig
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.records import Data, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder, require_none
from metasearch.encoders.protocols import CheckpointInfo, ProgressEncoder, TextEncoder, report_progress
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import Evaluation
from metasearch.io import cached, sha256_of_bytes
from metasearch.pipelines.distill.target_store import Targets, stored_targets
from metasearch.pipelines.neutral import neutralise, say, train_map
from metasearch.pipelines.run import ENCODER, Row, RunResult, complete, resumable
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.task_encoder import encoder_of
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import by_language
from metasearch.runs.per_query_results import QueryResults, load
from metasearch.runs.rows import MEAN
from metasearch.runs.versions import processor, versions
from metasearch.training.hardware import used, warn_if_bf16_is_slow

# Vectors of all texts of a task, encoded once for all cells of a study that have the same weights.

_FOLDS = 3
"""Each fold has its dev and its test part encoded, two fifths of all texts where there are five: three are more."""


class SharedVectors:
    """Gives vectors of a task's texts from a store on the disk, which the first to need them fills.

    All texts of a role are encoded together, whichever of them are asked for, so that vectors are the same bits whoever
    encodes them. They are kept by the encoder's fingerprint and checked when they are read; processes that need the
    same ones share the work (`stored_targets`).

    Args:
        encoder: whose vectors they are; it must not change while this is used.
        folder: of the store.
        data: all of the task's data.
        first: number of the role to begin with; processes that begin with different ones do not wait for each other.

    Raises:
        NonFiniteError: the encoder gives a vector that is not finite.
        RunFolderError: the folder cannot be written.
    """

    def __init__(self, encoder: Encoder, folder: Path, data: Data, first: int = 0) -> None:
        self.device: torch.device = encoder.device
        texts = _by_role(data)
        roles = list(texts)
        turn = first % len(roles)
        self._vectors: dict[Role, Targets] = {
            role: stored_targets(folder, encoder, texts[role], role) for role in [*roles[turn:], *roles[:turn]]
        }

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return the unit vectors of texts of the task, `(len(texts), D)`; `KeyError` for a text of none."""
        return self._vectors[role].vectors(texts)


def find_study(cell: Path) -> StudyFolder | None:
    """Return the study that a run is a cell of; None where it is no cell."""
    # <study>/cells/<arm>/<fold and seed>
    above = cell.resolve().parents
    if len(above) < 3 or above[1].name != "cells" or not (study := StudyFolder(above[2])).begun:
        return None
    return study


def shared_folder(cell: Path) -> Path | None:
    """Return where cells of a study share vectors; None where a run is no cell, or its study has too few folds."""
    study = find_study(cell)
    return study.path / "vectors" if study and len(study.stored().config.folds) >= _FOLDS else None


def _by_role(data: Data) -> dict[Role, list[str]]:
    """Return the texts of each role that an evaluation encodes, candidates first."""
    roles: dict[Role, list[str]] = {}
    for role, text, _ in texts_of(data):
        roles.setdefault(role, []).append(text)
    return dict(sorted(roles.items()))


log = logging.getLogger(__name__)

VectorsOf = Callable[[str], TextEncoder]
"""Part of the data → what gives the vectors of its texts."""
_Scores = tuple[list[Row], QueryResults]
"""Rows of scores without the facts of a run, and the results of each question."""


def begin(config: ScoreConfig, folder: Path, callback: Callback = SILENT) -> RunResult:
    """Score an encoder in a new run folder.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists.
    """
    benchmark = load_benchmark(config.data)
    encoder = encoder_of(config, benchmark)
    with resumable(folder):
        files = RunFolder.create(folder, config, benchmark.data.fingerprint, {ENCODER: encoder.origin})
        return complete(files, lambda: run_to_end(files, config, benchmark, encoder, callback))


def run_to_end(
    files: RunFolder, config: ScoreConfig, benchmark: Benchmark, encoder: Encoder, callback: Callback
) -> None:
    """Score what is not scored yet, and report."""
    began = time.monotonic()
    facts = facts_of_run(config) | {"mode": None, "recipe": None, "learner": config.label}
    facts |= origin_of(encoder)
    parts = {"dev": benchmark.split.dev, "test": benchmark.split.test}
    if benchmark.task.evaluation_only:
        del parts["dev"]
    if config.label == ZERO_SHOT:
        score_zero_shot(files, facts, benchmark, encoder, parts, callback)
    else:
        vectors_of = _vectors_of(files, config.neutralise, benchmark, encoder, callback)
        add_scores(files, facts | {"step": 0}, benchmark, encoder, parts, callback, vectors_of)
    report = f"# {config.label} on {config.data.task}\n\n{by_language(files.results(), 'test')}\n"
    files.finish(report, used(time.monotonic() - began, encoder.device))


def score_zero_shot(
    files: RunFolder, facts: Row, benchmark: Benchmark, encoder: Encoder, parts: dict[str, Data], callback: Callback
) -> None:
    """Append the scores of an untrained encoder to the results.

    The cells of a study compute the scores of the same weights on the same data once, in `scores/`.

    Args:
        files: the run folder.
        facts: the facts of each row, without label and step.
        benchmark: gives the measures.
        encoder: as it is before training.
        parts: name → data, such as `dev` and `test`.
        callback: receives the number of encoded texts.
    """
    study = find_study(files.path)
    vectors_of = _vectors_of(files, None, benchmark, encoder, callback)
    facts = {**facts, "learner": ZERO_SHOT, "step": 0}
    add_scores(files, facts, benchmark, encoder, parts, callback, vectors_of, study.path / "scores" if study else None)


def _vectors_of(
    files: RunFolder, settings: NeutralSettings | None, benchmark: Benchmark, encoder: Encoder, callback: Callback
) -> VectorsOf | None:
    """Return what gives the vectors that are scored; None where the encoder does, which may get a map for it."""
    folder = shared_folder(files.path)
    if folder is None:
        if settings:
            neutralise(encoder, benchmark, settings, callback)
        return None
    shared = partial(SharedVectors, encoder, folder, benchmark.data, first=benchmark.fold)
    if not settings:
        return lambda _: shared()
    # Each fold has a map of its own, and all of them begin with the same vectors.
    require_none(encoder)
    before = shared()
    # Translations of the train part are no texts of the task's own.
    neutral = train_map(encoder, benchmark, settings, callback, None if benchmark.translations else before)
    say(neutral, benchmark, settings)
    return lambda _: ProjectedEncoder(before, neutral)


def add_scores(
    files: RunFolder,
    facts: Row,
    benchmark: Benchmark,
    encoder: Encoder,
    parts: dict[str, Data],
    callback: Callback = SILENT,
    vectors_of: VectorsOf | None = None,
    cache: Path | None = None,
) -> None:
    """Append the scores of an encoder on parts of the data to the results, unless they stand there.

    On `test` a retrieval task is scored in all pools, and the results of every question are kept.

    Args:
        files: the run folder.
        facts: what each row begins with; `learner` names the encoder.
        benchmark: gives the measures and the data's fingerprint.
        encoder: what is scored.
        parts: name → data, such as `dev` and `test`.
        callback: hears how many texts are encoded.
        vectors_of: returns what gives the encoder's vectors on a part, where that is not the encoder itself.
        cache: folder of scores that runs with the same weights and data share.
    """
    label, task = str(facts["learner"]), benchmark.task.task
    known = scored(files, task, {str(measure) for measure in benchmark.measures})
    stamp = {"data": benchmark.data.fingerprint, "versions": versions()}
    for split, data in parts.items():
        if (label, split) in known:
            continue
        pools = RETRIEVAL_POOLS if split == "test" else RETRIEVAL_POOLS[:1]
        what = f"{label} on {split} of {task}"
        open_vectors = partial(vectors_of, split) if vectors_of else None
        compute = partial(_compute_scores, encoder, data, benchmark, pools, what, callback, open_vectors)
        rows, questions = _cached_scores(cache, encoder, data, benchmark, pools, compute) if cache else compute()
        if split == "test":
            # Before the rows: a row in the results says that the results by question are there.
            questions.save(files.queries(task, label, split), facts | {"split": split} | stamp)
        files.add_results({**facts, "split": split, **row, **stamp} for row in rows)


def _compute_scores(
    encoder: ProgressEncoder,
    data: Data,
    benchmark: Benchmark,
    pools: Sequence[Pool],
    what: str,
    callback: Callback,
    open_vectors: Callable[[], TextEncoder] | None,
) -> _Scores:
    vectors = open_vectors() if open_vectors else None
    results = evaluate_aloud(encoder, data, benchmark, pools, what, callback, vectors=vectors)
    return [{**row, "processor": processor()} for row in results.rows()], results.questions


def _cached_scores(
    cache: Path,
    encoder: Encoder,
    data: Data,
    benchmark: Benchmark,
    pools: Sequence[Pool],
    compute: Callable[[], _Scores],
) -> _Scores:
    """Return scores from a cache, computed where no run with the same weights, data and versions has computed them."""
    about = {
        "weights": encoder.fingerprint,
        "limits": [encoder.limit(role) for role in _by_role(data)],
        "data": data.fingerprint,
        "fold": benchmark.fold,
        "measures": [*map(str, benchmark.measures), *pools],
        "versions": versions(),
    }

    def make(folder: Path) -> None:
        rows, questions = compute()
        questions.save(folder / "queries.npz", about)
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")

    key = sha256_of_bytes(json.dumps(about, sort_keys=True).encode())[:16]
    folder = cached(key, make, cache)
    return json.loads((folder / "rows.json").read_text(encoding="utf-8")), load(folder / "queries.npz")[0]


def evaluate_aloud(
    encoder: ProgressEncoder,
    data: Data,
    benchmark: Benchmark,
    pools: Sequence[Pool],
    what: str,
    callback: Callback,
    precision: Precision = "fp32",
    vectors: TextEncoder | None = None,
) -> Evaluation:
    """Return the scores of an encoder; say what is scored, and let a callback hear of every batch of its texts.

    Where `vectors` are given, they are the encoder's, and are taken in its place.
    """
    log.info("scoring %s: %s", what, data.describe())
    if precision == "bf16":
        warn_if_bf16_is_slow(encoder.device)
    with report_progress(encoder, partial(callback.on_encode, what)):
        return evaluate(vectors or encoder, data, benchmark.measures, pools, precision)


def facts_of_run(config: RunConfig | ScoreConfig) -> Row:
    """Return what all rows of a run have in common: task, fold, encoder and seeds."""
    data = config.data
    where = {"task": data.task, "encoder": config.encoder.name, "fold": data.fold, "fold_seed": data.fold_seed}
    return where | {"seed": config.seed}


def origin_of(encoder: CheckpointInfo) -> Row:
    """Return what a row says of the checkpoint that an encoder was opened from.

    `weights` is its fingerprint, and `seeded` says that they are drawn from the seed of the row.
    """
    return {"weights": encoder.origin, **({"seeded": True} if encoder.seeded else {})} if encoder.origin else {}


def scored(files: RunFolder, task: str, measures: Collection[str]) -> set[tuple[str, str]]:
    """Return learner and split of which the mean of every measure on a task stands in the results."""
    rows = [row for row in files.results() if (row["task"], row["language"]) == (task, MEAN)]
    means = {(row["learner"], row["split"], row["measure"]) for row in rows}
    return {(learner, split) for learner, split, _ in means if all((learner, split, m) in means for m in measures)}
