"""Scores an encoder on the tests of the ablations, keeps what it got for each test item, and resamples them.

Tatoeba in eleven languages, STS 2017 and LAReQA, fold 0, whose candidates are sentences without their paragraphs: that
is a third of the tokens, and so the arms can train for longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.ablation_arms import INCLUDE, TESTS, Test
from metasearch.config.seeding import stream
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.int8 import packed
from metasearch.errors import DataError
from metasearch.evaluation.statistics import bootstrap
from metasearch.pipelines.factory import load_encoder
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import Cell, QueryResults, load, query_results_path

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Figure:
    """A score on a test: its value, and its values on B resamples of the test items, `(B,)`.

    Equal tests have equal resamples; `data` is the fingerprint of the task's data.
    """

    value: float
    resampled: Array
    data: str

    def interval(self) -> bootstrap.Interval:
        """Return the 95% interval over test items."""
        return bootstrap.interval(self.resampled)

    def above(self, other: "Figure") -> "Figure":
        """Return by how much it is higher than another, of the same resamples.

        Raises:
            DataError: the two are not of the same test items.
        """
        if (self.data, self.resampled.shape) != (other.data, other.resampled.shape):
            raise DataError(f"figures of other test data cannot be compared: {self.data} and {other.data}")
        return Figure(self.value - other.value, self.resampled - other.resampled, self.data)


def benchmarks(data: str, tests: Mapping[str, Test] = TESTS) -> list[Benchmark]:
    """Return the tasks of the tests with their data."""
    tasks = dict.fromkeys(test.task for test in tests.values())
    return [load_benchmark(task, data=data, include=[str(INCLUDE)]) for task in tasks]


def opened(model: Path, benchmark: Benchmark) -> Encoder:
    """Return an encoder with the lengths of a task."""
    return load_encoder(str(model), benchmark.task.max_length, device="cpu")


def score(model: Path, label: str, data: str, folder: Path, tests: Mapping[str, Test] = TESTS) -> None:
    """Score an encoder, unless that is done; the result of each item stands below the folder, too."""
    files = RunFolder(folder)
    if files.finished:
        return
    with files.held():
        chosen = benchmarks(data, tests)
        for benchmark in chosen:
            encoder = opened(model, benchmark)
            Scorer({"encoder": label}).add(files, label, encoder, benchmark, {"test": benchmark.split.test})
        files.finish(f"# {label}\n\nScored on {', '.join(each.task.name for each in chosen)}.\n", sizes(encoder))


def sizes(encoder: Encoder) -> dict[str, float]:
    """Return the number of weights, and their MiB in float32 and as `metasearch export --int8` stores them."""
    weights = encoder.parameter_count
    transformer = encoder.model[0].auto_model
    beside = weights - sum(parameter.numel() for parameter in transformer.parameters())
    stored = sum(tensor.nbytes for tensor in packed(transformer.state_dict()).values()) + 4 * beside
    return {"parameters": weights, "float32_mib": 4 * weights / 2**20, "int8_mib": stored / 2**20}


def figures(folder: Path, label: str, resamples: int, tests: Mapping[str, Test] = TESTS) -> dict[str, Figure]:
    """Return the scores of an encoder on each test."""
    files, by_test = RunFolder(folder), {}
    for name, test in tests.items():
        kept, facts = load(query_results_path(files.path, test.task, label, "test"))
        by_test[name] = figure(kept, test, str(facts["data"]), resamples)
    return by_test


def figure(kept: QueryResults, test: Test, data: str, resamples: int) -> Figure:
    """Return a test's value as observed and on resamples of its items; an item is drawn with its translations."""
    cells = sorted(cell for cell in kept.units if cell[0] == test.pool)
    units = {unit: i for i, unit in enumerate(sorted({unit for cell in cells for unit in kept.units[cell]}))}
    rows = [np.array([units[unit] for unit in kept.units[cell]]) for cell in cells]
    observed = _means(kept, test.measure, cells, rows, np.ones((1, len(units))))
    random = stream(0, "ablations", test.task)
    blocks = bootstrap.draws(np.arange(len(units)), resamples, random)
    resampled = np.concatenate([_means(kept, test.measure, cells, rows, counts) for counts in blocks])
    return Figure(float(observed[0]), resampled, data)


def _means(
    kept: QueryResults, measure: str, cells: Sequence[Cell], rows: Sequence[NDArray[np.int64]], counts: Array
) -> Array:
    """Return the mean over cells on each resample, `(B,)`.

    Args:
        kept: result of each item.
        measure: column, or `spearman`.
        cells: languages or language pairs.
        rows: unit of each item of a cell.
        counts: how often each resample has each unit, `(B, U)`.
    """
    means = []
    for cell, row in zip(cells, rows, strict=True):
        weights = counts[:, row]
        if measure == "spearman":
            means.append(bootstrap.spearman(weights, kept.columns["predicted", *cell], kept.columns["gold", *cell]))
        else:
            column = kept.columns[measure, *cell][:, None]
            means.append(bootstrap.means(weights, column, np.ones_like(column))[:, 0])
    mean: Array = np.mean(means, axis=0)
    return mean
