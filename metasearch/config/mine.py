"""Settings of `metasearch mine`."""

from typing import Annotated, Literal

from metasearch.config.base import Count, Flag, NonNegative, Positive, Settings
from metasearch.config.languages import Language
from metasearch.config.run import ComputeConfig, DataConfig, EncoderConfig


class MineConfig(Settings):
    """How hard negatives are mined for other trainers."""

    data: DataConfig
    encoder: EncoderConfig
    compute: ComputeConfig = ComputeConfig()
    split: Literal["train", "dev", "test", "all"] = "train"
    """Part of the fold whose questions are anchors; a model must not be tested on questions that it was trained on."""
    negatives: Annotated[Positive, Flag(name="--num-negatives", metavar="N")] = 5
    """Negatives of each row."""
    range_min: Count = 0
    """Nearest candidates of a language to skip, which may be answers that nobody labelled."""
    range_max: Annotated[Positive | None, Flag(metavar="N")] = None
    """Nearest candidates of a language to choose from; by default all."""
    relative_margin: NonNegative = 0.05
    """Share of the answer's cosine by which a negative must be less similar to the question."""
    languages: Annotated[tuple[Language, ...], Flag(name="--language", metavar="TAG")] = ()
    """Language of answers and negatives, such as de; repeatable. By default all."""
