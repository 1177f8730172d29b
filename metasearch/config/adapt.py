"""Settings of a query adapter's training."""

from typing import Annotated, Literal

from pydantic import Field

from metasearch.config.base import Flag, NonNegative, Positive, Rate, Seed, Settings

Form = Literal["matrix", "low-rank", "rotation", "scale"]
"""Forms of `metasearch.encoders.adapter`, which are trained."""
METRIC = "metric"
"""The form that is computed: `metasearch.pipelines.adapt.metric`."""


class AdapterSettings(Settings):
    """How a query adapter is learned. Defaults are chosen by measurement: docs/results/adaptation.md."""

    form: Literal["metric", "matrix", "low-rank", "rotation", "scale"] = "metric"
    """Form of the adapter: metric is computed; matrix, low-rank, rotation and scale are trained."""
    rank: Positive = 16
    """Rank of the form low-rank."""
    steps: Positive = 100
    """Training steps."""
    lr: Rate = 1e-4
    """Learning rate of Adam."""
    temperature: Rate = 0.05
    """Temperature of the loss."""
    decay: NonNegative = 0.0
    """Weight of the squared distance from the identity."""
    batch: Positive = 32
    """Queries of a step."""
    sample: Positive = 2048
    """Random passages that queries are compared with."""
    hard: Positive = 32
    """Nearest passages of each query that it is compared with."""
    folds: Annotated[int, Field(ge=3, le=20)] = 4
    """Held-out folds; fewer if there are few labels."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed of the training."""
