"""`score`: an encoder without training, on dev and test of a fold, in a run folder.

There is no command with this name: a study's cells are such runs, and `metasearch resume` resumes one.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from metasearch.compress.onnx_encoder import OnnxEncoder, is_exported
from metasearch.config import registry
from metasearch.config.measure import MULTILINGUAL
from metasearch.config.run import EvaluateConfig, ScoreConfig
from metasearch.data.benchmark import Benchmark, build
from metasearch.data.records import texts_of
from metasearch.encoders.cross_encoder import open_reranker
from metasearch.encoders.device import device_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.unknown_languages import warn_of_unknown
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.study.read import find_study
from metasearch.io import atomic_write
from metasearch.pipelines import factory
from metasearch.pipelines.neutral import neutralise
from metasearch.pipelines.run import ENCODER, Run
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.callbacks import SILENT, Callback, OpenCallback
from metasearch.runs.markdown import by_language
from metasearch.runs.per_query_results import Ranking
from metasearch.runs.rows import Row
from metasearch.runs.torchrun_env import require_alone
from metasearch.training.hardware import used


class ScoreRun(Run[ScoreConfig]):
    """Scores an encoder without training on dev and test."""

    settings = ScoreConfig

    def load_data(self) -> str:
        """Load the benchmark."""
        require_alone("the scoring of an encoder")
        self.benchmark = build(self.config.data)
        return self.benchmark.data.fingerprint

    def load_encoders(self) -> Mapping[str, str]:
        """Load the encoder."""
        self.encoder = factory.load_task_encoder(
            self.config.encoder, self.benchmark, self.config.compute.device, self.config.seed
        )
        return {ENCODER: self.encoder.origin}

    def work(self, open_callback: OpenCallback) -> None:
        """Compute missing scores, and report."""
        config, benchmark, encoder, files = self.config, self.benchmark, self.encoder, self.files
        parts = {"dev": benchmark.split.dev, "test": benchmark.split.test}
        if benchmark.task.evaluation_only:
            del parts["dev"]
        with open_callback(config.label) as callback:
            if config.neutralise:
                neutralise(encoder, benchmark, config.neutralise, callback)
            facts = {"encoder": config.encoder.name, "fold_seed": config.data.fold_seed, "seed": config.seed}
            scorer = Scorer(facts | {"mode": None, "recipe": None, "step": 0}, callback)
            scorer.add(files, config.label, encoder, benchmark, parts, cache=find_score_cache(files.path))
        report = f"# {config.label} on {benchmark.task.name}\n\n{by_language(files.results(), 'test')}\n"
        files.finish(report, used(self.seconds, encoder.device))


def find_score_cache(cell: Path) -> Path | None:
    """Return the score folder that a study's cells share; None for a run that is no cell."""
    study = find_study(cell)
    return study / "scores" if study else None


# `metasearch evaluate`: the scores of an encoder without a run folder.

TREC_DEPTH = 1000
"""Candidates per question in a TREC run file, as in TREC's runs."""


def evaluate_encoder(
    config: EvaluateConfig, benchmark: Benchmark, callback: Callback = SILENT, trec_run: Path | None = None
) -> list[Row]:
    """Return an encoder's scores on a part of a benchmark; in bfloat16 and int8 the rows have a `precision`.

    `trec_run` is a TREC run file to write, with the best 1,000 candidates of each question in the first pool.
    """
    name, ref = config.encoder.name, config.rerank
    encoder = _load_encoder(config, benchmark)
    if isinstance(encoder, Encoder):
        warn_of_unknown(encoder, ((each.language, each.text) for each in texts_of(benchmark.part(config.split))))
    trust = config.encoder.trust_remote_code
    reranker = open_reranker(ref.model, device_of(config.compute.device), trust) if ref.model else None
    retrieval = {"reranker": reranker, "rerank_top": ref.top, **({"depth": TREC_DEPTH} if trec_run else {})}
    scored = Scorer({"encoder": name}, callback).score(
        name, encoder, benchmark, config.split, config.pools, **retrieval
    )
    if trec_run:
        assert scored.questions.ranking is not None
        tag = name if config.pools[0] == MULTILINGUAL else f"{name}+{config.pools[0]}"
        write_ranking(trec_run, scored.questions.ranking, tag)
    return scored.rows


def _load_encoder(config: EvaluateConfig, benchmark: Benchmark) -> Encoder | OnnxEncoder:
    """Return the encoder, or one that runs an exported graph, with the lengths of the task."""
    ref, device, precision = config.encoder, config.compute.device, config.compute.precision
    if ref.name in registry.names("encoders") or not is_exported(Path(ref.name)):
        return load_encoder(ref, benchmark.task.max_length, identify=True, device=device, precision=precision)
    if device not in ("auto", "cpu"):
        raise ConfigError(f"--device {device}: {ref.name} is an export to ONNX, which runs on the CPU")
    if precision not in ("auto", "float32"):
        raise ConfigError(f"--precision {precision}: {ref.name} is an export to ONNX, which has its own precision")
    return OnnxEncoder(Path(ref.name), benchmark.task.max_length, ref.prompts)


def write_ranking(path: Path, ranking: Ranking, system: str) -> None:
    """Write a ranking as a TREC run file, whole or not at all; `DataError` for a name with white space.

    A line is `query Q0 document rank score system`. A query is `LANGUAGE:ID`, as translations share their id.
    """
    name, lines = "_".join(system.split()), list[str]()
    for question, columns, scores in zip(ranking.questions, ranking.top, ranking.scores, strict=True):
        query = f"{question.language}:{question.id}"
        # The question itself, where it is not ranked, comes last in a pool that is no deeper.
        ranked = [pair for pair in zip(columns, scores, strict=True) if np.isfinite(pair[1])]
        for rank, (column, score) in enumerate(ranked, 1):
            document = ranking.candidates[column].id
            for written in (query, document, name):
                if not written or written.split() != [written]:
                    raise DataError(
                        f"{path}: '{written}' cannot be a name in a TREC run file, which has no white space"
                    )
            # `repr` has all digits of a score, so that reading it back changes no order.
            lines.append(f"{query} Q0 {document} {rank} {float(score)!r} {name}\n")
    atomic_write(path, "".join(lines).encode())
