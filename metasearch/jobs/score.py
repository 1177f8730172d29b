"""`score`: an encoder as it is, on dev and test of a fold, in a run folder; and how any run adds its scores.

There is no command of this name: cells of a study are such runs, and `metasearch resume` goes on with one.
"""

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.records import Data
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.retrieval import POOLS
from metasearch.jobs import compose
from metasearch.jobs.lifecycle import Row, RunResult, complete, require_same_data, require_trust
from metasearch.runs.folder import RunFolder
from metasearch.runs.listener import Listener, Silent
from metasearch.runs.markdown import by_language
from metasearch.runs.rows import MEAN
from metasearch.runs.versions import processor, versions
from metasearch.spec.run import DataRef, EncoderRef, ScoreConfig
from metasearch.training.machine import used

log = logging.getLogger(__name__)


def begin(config: ScoreConfig, folder: Path, listener: Listener | None = None) -> RunResult:
    """Score an encoder in a new run folder.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists.
    """
    benchmark = load_benchmark(DataRef.of(config))
    files = RunFolder.create(folder, config, benchmark.data.fingerprint)
    return complete(files, lambda: run_to_end(files, config, benchmark, listener or Silent()))


def resume(
    folder: Path, listener: Listener | None = None, trust_remote_code: bool = False, patience: float = 0
) -> RunResult:
    """Add the scores that a run lacks; a finished one is only read. Arguments and errors are as of `train.resume`."""
    files, config, fingerprint = RunFolder.open(folder, ScoreConfig)
    if files.finished:
        return RunResult.of(files)
    require_trust(folder, config.trust_remote_code, trust_remote_code)
    benchmark = load_benchmark(DataRef.of(config))
    require_same_data(folder, fingerprint, benchmark.data.fingerprint)
    return complete(files, lambda: run_to_end(files, config, benchmark, listener or Silent()), patience)


def run_to_end(files: RunFolder, config: ScoreConfig, benchmark: Benchmark, listener: Listener) -> None:
    """Score what is not scored yet, and report."""
    began = time.monotonic()
    encoder = compose.load_encoder(EncoderRef.of(config), benchmark.task.max_length)
    shared = ("task", "encoder", "fold", "fold_seed", "seed")
    facts = {**{key: getattr(config, key) for key in shared}, "mode": None, "recipe": None, "learner": config.label}
    parts = {"dev": benchmark.split.dev, "test": benchmark.split.test}
    if benchmark.task.evaluation_only:
        del parts["dev"]
    add_scores(files, facts | {"step": 0}, benchmark, encoder, parts, listener)
    files.finish(report(files, config), used(time.monotonic() - began, encoder.device))


def report(files: RunFolder, config: ScoreConfig) -> str:
    """Return the scores on test in Markdown."""
    return f"# {config.label} on {config.task}\n\n{by_language(files.results(), 'test')}\n"


def add_scores(
    files: RunFolder,
    facts: Row,
    benchmark: Benchmark,
    encoder: Encoder,
    parts: dict[str, Data],
    listener: Listener | None = None,
) -> None:
    """Append the scores of an encoder on parts of the data to the results, unless they stand there.

    On `test` a retrieval task is scored in all pools, and the results of every question are kept.

    Args:
        files: the run folder.
        facts: what each row begins with; `learner` names the encoder.
        benchmark: gives the measures and the data's fingerprint.
        encoder: what is scored.
        parts: name → data, such as `dev` and `test`.
        listener: hears how many texts are encoded.
    """
    label, task = str(facts["learner"]), benchmark.task.task
    known = scored(files, task, {str(measure) for measure in benchmark.measures})
    stamp = {"data": benchmark.data.fingerprint, "versions": versions()}
    for split, data in parts.items():
        questions = files.queries(task, label, split)
        if (label, split) in known and (split != "test" or questions.is_file()):
            continue
        with heard(encoder, listener or Silent(), f"{label} on {split} of {task}", data):
            results = evaluate(encoder, data, benchmark.measures, POOLS if split == "test" else POOLS[:1])
        if split == "test":
            # Before the rows: a row in the results says that the results by question are there.
            results.questions.save(questions, facts | {"split": split} | stamp)
        if (label, split) not in known:
            stamped = {**stamp, "processor": processor()}
            files.add_results({**facts, "split": split, **row, **stamped} for row in results.rows())


@contextmanager
def heard(encoder: Encoder, listener: Listener, what: str, data: Data) -> Iterator[None]:
    """Say what is scored, and let a listener hear of every batch of texts that is encoded for it."""
    log.info("scoring %s: %s", what, data.describe())
    encoder.on_progress = lambda done, total: listener.on_encode(what, done, total)
    try:
        yield
    finally:
        encoder.on_progress = None


def scored(files: RunFolder, task: str, measures: Collection[str]) -> set[tuple[str, str]]:
    """Return learner and split of which the mean of every measure on a task stands in the results."""
    rows = [row for row in files.results() if (row["task"], row["language"]) == (task, MEAN)]
    means = {(row["learner"], row["split"], row["measure"]) for row in rows}
    return {(learner, split) for learner, split, _ in means if all((learner, split, m) in means for m in measures)}
