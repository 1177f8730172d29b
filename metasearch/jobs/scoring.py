"""Scores of an encoder in a run folder: on dev and test of a fold, with what is kept of each test question."""

import time
from collections.abc import Collection
from typing import Any

from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.records import Data
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.retrieval import POOLS
from metasearch.jobs import compose
from metasearch.runs.folder import RunFolder, versions
from metasearch.runs.markdown import by_language
from metasearch.runs.rows import MEAN
from metasearch.spec.recipe import ScoreConfig
from metasearch.training.machine import used

Row = dict[str, Any]


def score(config: ScoreConfig, files: RunFolder) -> None:
    """Score an encoder as it is, in a run folder that was made for it, unless that is done."""
    if files.finished:
        return
    began = time.monotonic()
    benchmark = load_benchmark(config.task, None, config.fold, config.data, config.include, config.fold_seed)
    encoder = compose.load_encoder(
        config.encoder, benchmark.task.max_length, config.device, config.seed, config.trust_remote_code
    )
    shared = ("task", "encoder", "fold", "fold_seed", "seed")
    facts = {**{key: getattr(config, key) for key in shared}, "mode": None, "recipe": None, "learner": config.label}
    parts = {"dev": benchmark.split.dev, "test": benchmark.split.test}
    if benchmark.task.evaluation_only:
        del parts["dev"]
    add_scores(files, facts | {"step": 0}, benchmark, encoder, parts)
    report = f"# {config.label} on {config.task}\n\n{by_language(files.results(), 'test')}\n"
    files.finish(report, used(time.monotonic() - began, encoder.device))


def add_scores(files: RunFolder, facts: Row, benchmark: Benchmark, encoder: Encoder, parts: dict[str, Data]) -> None:
    """Append the scores of an encoder on parts of the data to the results, unless they stand there.

    On `test` a retrieval task is scored in all pools, and the results of every question are kept.

    Args:
        files: of the run.
        facts: that each row begins with; `learner` names the encoder.
        benchmark: gives the measures and the data's fingerprint.
        encoder: what is scored.
        parts: name → data, such as `dev` and `test`.
    """
    label = str(facts["learner"])
    known = complete(files, benchmark.task.task, {str(measure) for measure in benchmark.measures})
    stamp = {"data": benchmark.data.fingerprint, "versions": versions()}
    for split, data in parts.items():
        path = files.queries(benchmark.task.task, label, split)
        if (label, split) in known and (split != "test" or path.is_file()):
            continue
        found = evaluate(encoder, data, benchmark.measures, POOLS if split == "test" else POOLS[:1])
        if split == "test":
            # Before the rows: a row in the results says that the results by question are there.
            found.questions.save(path, facts | {"split": split} | stamp)
        if (label, split) not in known:
            files.add_results({**facts, "split": split, **row, **stamp} for row in found.rows())


def complete(files: RunFolder, task: str, measures: Collection[str]) -> set[tuple[str, str]]:
    """Return learner and split of which the mean of every measure on a task stands in the results."""
    rows = [row for row in files.results() if (row["task"], row["language"]) == (task, MEAN)]
    found = {(row["learner"], row["split"], row["measure"]) for row in rows}
    return {(learner, split) for learner, split, _ in found if all((learner, split, m) in found for m in measures)}


def means(files: RunFolder, monitor: str) -> dict[tuple[str, str], float]:
    """Return the mean of a measure by learner and split, in the first pool that was scored."""
    found: dict[tuple[str, str], float] = {}
    for row in files.results():
        if (row["measure"], row["language"]) == (monitor, MEAN):
            found.setdefault((row["learner"], row["split"]), row["value"])
    return found
