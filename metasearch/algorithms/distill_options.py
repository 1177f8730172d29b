"""Hyper-parameters of a distillation stage."""

from typing import Annotated, Literal

from pydantic import Field, field_serializer, field_validator

from metasearch.config import registry
from metasearch.config.base import FrozenConfig, NonNegative, Positive, Rate
from metasearch.encoders.encoder import Output
from metasearch.errors import nearest

CONTRAST = "contrast-"
"""What the names of contrastive losses begin with."""


class DistillOptions(FrozenConfig):
    """Hyper-parameters of a stage.

    Attributes:
        output: what is compared; `pooled` is the paper's sentence vector, `sentence` its unit vector, `embedding`
            the paper's stage 2, `tokens` the same at every token, and `states` what the last layer gives there.
        target: what a translation is compared with: the frozen encoder's vector of the `source` text (equations 2
            and 6), or of the translation's `own` (equations 3 and 4), which it must be able to read.
        contrast: kind of the contrastive loss, `soft`, `bool`, `ce`, `ce-hard` or `infonce`, of
            `metasearch.algorithms.losses.contrast`; `none` has no such term.
        contrast_weight: weight of that loss against the squared error (equation 7 has 1).
        temperature: temperature of a contrastive loss that has one.
        source_share: share of the pairs of a batch whose source the learner reads, too, spread evenly over it. An
            encoder that knows the pivot language already learns from translations what it lacks, at half the cost.
        dimensions: ascending sizes d; vectors truncated to their first d dimensions also learn the teacher's
            similarities (`metasearch.algorithms.losses.matryoshka`). None by default.
    """

    output: Output = "pooled"
    target: Literal["source", "own"] = "source"
    contrast: str = "none"
    contrast_weight: NonNegative = 1.0
    temperature: Rate = 0.05
    source_share: Annotated[float, Field(ge=0, le=1)] = 1.0
    dimensions: tuple[Positive, ...] = ()

    @field_validator("contrast")
    @classmethod
    def _check_name(cls, kind: str) -> str:
        kinds = [n.removeprefix(CONTRAST) for n in registry.names("losses") if n.startswith(CONTRAST)]
        if kind not in ("none", *kinds):
            raise ValueError(f"unknown contrastive loss.{nearest(kind, ['none', *kinds])}")
        return kind

    @field_validator("dimensions")
    @classmethod
    def _ascending(cls, given: tuple[int, ...]) -> tuple[int, ...]:
        if given != (right := tuple(sorted(set(given)))):
            raise ValueError(f"expected each number once, the smallest first: {list(right)}")
        return given

    @field_serializer("dimensions")
    def _as_list(self, dimensions: tuple[int, ...]) -> list[int]:
        return list(dimensions)
