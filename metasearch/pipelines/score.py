"""`score`: an encoder without training, on dev and test of a fold, in a run folder.

There is no command of this name: cells of a study are such runs, and `metasearch resume` resumes one.
"""

from collections.abc import Mapping
from pathlib import Path

from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.factory import load_task_encoder
from metasearch.pipelines.neutral import neutralise
from metasearch.pipelines.run import ENCODER, CallbackFactory, Run
from metasearch.pipelines.scorer import Scorer, run_facts
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.runs.markdown import by_language
from metasearch.runs.torchrun_env import require_alone
from metasearch.training.hardware import used


class ScoreRun(Run[ScoreConfig]):
    """Scores an encoder without training on dev and test."""

    settings = ScoreConfig

    def load_data(self) -> str:
        """Load the benchmark."""
        require_alone("the scoring of an encoder")
        self.benchmark = load_benchmark(self.config.data)
        return self.benchmark.data.fingerprint

    def load_encoders(self) -> Mapping[str, str]:
        """Load the encoder."""
        self.encoder = load_task_encoder(self.config, self.benchmark)
        return {ENCODER: self.encoder.origin}

    def work(self, open_callback: CallbackFactory) -> None:
        """Score what is not scored yet, and report."""
        config, benchmark, encoder, files = self.config, self.benchmark, self.encoder, self.files
        parts = {"dev": benchmark.split.dev, "test": benchmark.split.test}
        if benchmark.task.evaluation_only:
            del parts["dev"]
        with open_callback(config.label) as callback:
            if config.neutralise:
                neutralise(encoder, benchmark, config.neutralise, callback)
            scorer = Scorer(run_facts(config) | {"mode": None, "recipe": None, "step": 0}, callback)
            scorer.add(files, config.label, encoder, benchmark, parts, cache=find_score_cache(files.path))
        report = f"# {config.label} on {config.data.task}\n\n{by_language(files.results(), 'test')}\n"
        files.finish(report, used(self.seconds, encoder.device))


def find_score_cache(cell: Path) -> Path | None:
    """Return the folder of scores that the cells of a study share; None for a run that is no cell."""
    # <study>/cells/<arm>/<fold and seed>
    above = cell.resolve().parents
    if len(above) < 3 or above[1].name != "cells" or not (study := StudyFolder(above[2])).begun:
        return None
    return study.path / "scores"
