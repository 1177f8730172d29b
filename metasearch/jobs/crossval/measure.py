"""Measures what one cell of an arm costs: `python -m metasearch.jobs.crossval.measure`, in a process of its own.

It reads the configuration of a run as JSON on standard input, takes one outer step, encodes some texts of the test
data, and writes a `Measured` as JSON to standard output.
"""

import json
import sys
import time
from contextlib import suppress

from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.texts import texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.errors import MetasearchError
from metasearch.jobs.crossval.estimate import Measured
from metasearch.jobs.neutral import train_texts
from metasearch.jobs.task_encoder import encoder_of
from metasearch.jobs.train import trainer_of, with_map_before
from metasearch.runs.listener import Listener
from metasearch.spec.recipe import Role
from metasearch.spec.run import DataRef, RunConfig, ScoreConfig
from metasearch.training.allocator import keep_memory
from metasearch.training.machine import peak_memory

SAMPLE = 64
"""Texts that are encoded to see how long one takes."""

Text = tuple[Role, str]


class _Enough(Exception):
    """One step is done."""


class _First(Listener):
    """A listener that ends training after its first step."""

    def __init__(self) -> None:
        self.total = 0

    def on_step(self, step: int, total: int, phase: str, terms: dict[str, float]) -> None:
        """Stop."""
        self.total = total
        raise _Enough


def measure(config: RunConfig | ScoreConfig) -> Measured:
    """Load what a run needs, take one outer step of it, and encode some texts."""
    began = time.monotonic()
    mode = config.mode if isinstance(config, RunConfig) else None
    benchmark = load_benchmark(DataRef.of(config), mode)
    if isinstance(config, RunConfig):
        benchmark = benchmark.trained_on(config.recipe.translate)
    encoder = encoder_of(config, benchmark)
    loaded = time.monotonic()
    steps = _one_step(config, benchmark, encoder) if isinstance(config, RunConfig) else 0
    stepped = time.monotonic()
    test = list(dict.fromkeys((role, text) for role, text, _ in texts_of(benchmark.split.test)))
    seconds = _seconds_per_text(encoder, test)
    dev = set() if benchmark.task.evaluation_only else {(role, text) for role, text, _ in texts_of(benchmark.split.dev)}
    if stage := config.recipe.neutralise if isinstance(config, RunConfig) else config.neutralise:
        # A map is fitted anew for each dev score.
        dev |= {text for found in train_texts(benchmark, stage).values() for text in found}
    return Measured(
        load=loaded - began,
        step=stepped - loaded,
        steps=steps,
        dev=seconds * len(dev),
        test=seconds * len(test),
        memory=peak_memory(),
    )


def _one_step(config: RunConfig, benchmark: Benchmark, encoder: Encoder) -> int:
    """Take an outer step; return how many the run may take."""
    first = _First()
    with_map_before(encoder, benchmark, config.recipe)
    with suppress(_Enough):
        trainer_of(config, benchmark, encoder, None, first, baseline=0.0).fit()
    return first.total


def _seconds_per_text(encoder: Encoder, distinct: list[Text]) -> float:
    # Spread over all texts: questions come first, and are mostly shorter than candidates.
    sample = distinct[:: max(1, len(distinct) // SAMPLE)][:SAMPLE]
    began = time.monotonic()
    for role in dict.fromkeys(role for role, _ in sample):
        encoder.encode([text for own, text in sample if own == role], role)
    return (time.monotonic() - began) / len(sample)


def main(written: str) -> int:
    """Print what a run of a configuration costs; return the exit code."""
    keep_memory()  # as the process of a cell does
    asked = json.loads(written)
    try:
        kind = RunConfig if "recipe" in asked else ScoreConfig
        sys.stdout.write(measure(kind.model_validate(asked)).model_dump_json())
    except MetasearchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read()))
