"""Scores an encoder on the tests of the ablations, and keeps what it got for each test item.

Tatoeba in eleven languages, STS 2017 and LAReQA, fold 0, whose candidates are sentences without their paragraphs: that
is a third of the tokens, and so the arms can train for longer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.rows import Row
from benchmarks.paper.ablation_arms import INCLUDE, TESTS, Test
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.int8 import packed
from metasearch.encoders.load import load_encoder
from metasearch.errors import DataError
from metasearch.evaluation.statistics.jackknife import Interval, Stratum, spread
from metasearch.evaluation.statistics.paired import subtract
from metasearch.evaluation.study.paired import omitted
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path


@dataclass(frozen=True, eq=False)
class Figure:
    """A score on a test, whole and without each test item; `data` is the fingerprint of the task's data."""

    stratum: Stratum
    data: str

    @property
    def value(self) -> float:
        """The score."""
        return float(self.stratum.values[0])

    def interval(self) -> Interval:
        """Return the 95% interval over test items."""
        return spread([self.stratum]).intervals(self.stratum.values)[0]

    def above(self, other: "Figure") -> "Figure":
        """Return by how much it is higher than another.

        Raises:
            DataError: the two are not of the same test items.
        """
        one, two = self.stratum, other.stratum
        if (self.data, one.without.shape) != (other.data, two.without.shape):
            raise DataError(f"figures of other test data cannot be compared: {self.data} and {other.data}")
        values, without = subtract(one.values, two.values), subtract(one.without, two.without)
        return Figure(Stratum(values, without, one.shares, one.questions), self.data)


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


def figures(folder: Path, label: str, tests: Mapping[str, Test] = TESTS) -> dict[str, Figure]:
    """Return the scores of an encoder on each test."""
    files, by_test = RunFolder(folder), {}
    for name, test in tests.items():
        kept, facts = load(query_results_path(files.path, test.task, label, "test"))
        by_test[name] = figure(kept, test, str(facts["data"]))
    return by_test


def figure(kept: QueryResults, test: Test, data: str) -> Figure:
    """Return a test's value, whole and without each of its items; an item is left out with its translations."""
    cells = sorted(cell for cell in kept.units if cell[0] == test.pool)
    units = {unit: i for i, unit in enumerate(sorted({unit for cell in cells for unit in kept.units[cell]}))}
    values, without, _, shares = (
        part.mean(axis=-1, keepdims=True) for part in omitted([kept], cells, test.measure, units)
    )
    return Figure(Stratum(values, without, shares, len(units)), data)


# Rows of `results/mini_ablations.jsonl`.

Figures = Mapping[str, Mapping[str, Figure]]
"""Arm → test → what it got."""


def arm_rows(figures: Figures, facts: Mapping[str, Mapping[str, Any]], tests: Mapping[str, Test] = TESTS) -> list[Row]:
    """Return a row for each arm and test, and one for each of its facts: sizes, and sentences per second."""
    rows: list[Row] = []
    for arm, by_test in figures.items():
        for test, figure in by_test.items():
            interval = figure.interval()
            measure = {"task": tests[test].task, "measure": tests[test].measure, "data": figure.data}
            scored = {"value": figure.value, "low": interval.low, "high": interval.high}
            rows.append({"study": arm, "metric": test, **scored, **measure})
        for metric, value in facts.get(arm, {}).items():
            middle, low, high = value if isinstance(value, list) else (value, None, None)
            rows.append({"study": arm, "metric": metric, "value": middle, "low": low, "high": high})
    return rows


def difference_rows(figures: Figures, against: Mapping[str, str]) -> list[Row]:
    """Return a row for each arm that is compared with another, `against` of it, and each test."""
    rows: list[Row] = []
    for arm, other in against.items():
        if arm in figures and other in figures:
            for test, figure in figures[arm].items():
                change = figure.above(figures[other][test])
                interval = change.interval()
                found = {"value": change.value, "low": interval.low, "high": interval.high}
                rows.append({"study": f"{arm} - {other}", "metric": test, **found, "arm": arm, "against": other})
    return rows
