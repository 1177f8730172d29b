"""An encoder's dev score in training."""

from metasearch.config.precision import Precision
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import hold_out
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.neutral import train_projection


class DevEvaluator:
    """Scores an encoder, as a run would save it now, on the scored part of dev.

    A projection after training is estimated anew each time. `vectors` are the encoder's vectors of the last time,
    without such a projection.
    """

    def __init__(
        self, encoder: Encoder, benchmark: Benchmark, recipe: Recipe, precision: Precision = "float32"
    ) -> None:
        self._encoder, self._benchmark, self._recipe, self._precision = encoder, benchmark, recipe, precision
        self._data = hold_out(benchmark.split.dev, recipe.budget.dev_holdout)[1]
        self.vectors: CachedEncoder | None = None

    def __call__(self) -> float:
        """Return the mean of the task's monitored measure."""
        self.vectors = CachedEncoder(self._encoder)
        delivered: TextEncoder = self.vectors.part("dev")
        stage = self._recipe.neutralise
        if stage is not None and stage.when == "after":
            neutral = train_projection(self._encoder, self._benchmark, stage, through=self.vectors.part("train"))
            delivered = ProjectedEncoder(delivered, neutral)
        found = evaluate(delivered, self._data, self._benchmark.measures, precision=self._precision)
        return found.mean(self._benchmark.task.monitor)
