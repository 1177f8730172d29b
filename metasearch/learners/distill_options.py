"""Hyper-parameters of a stage that teaches an encoder the vectors of a frozen one."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from metasearch.encoders.encoder import Output
from metasearch.errors import nearest
from metasearch.spec import registry
from metasearch.spec.declared import Contradiction, Declared, NonNegative, Positive, Rate

CONTRAST = "contrast-"
"""What the names of contrastive losses begin with."""


class DistillOptions(Declared):
    """Hyper-parameters of a stage.

    Attributes:
        output: what is compared; `pooled` is the paper's sentence vector, `sentence` its unit vector, `embedding`
            the paper's stage 2, `tokens` the same at every token, and `states` what the last layer gives there.
        target: what a translation is compared with: the frozen encoder's vector of the `source` text (equations 2
            and 6), or of the translation's `own` (equations 3 and 4), which it must be able to read.
        contrast: kind of the contrastive loss, `soft`, `bool`, `ce` or `infonce`, each a file
            `metasearch.learners.losses.contrast_<kind>`; `none` has no such term.
        contrast_weight: weight of that loss against the squared error (equation 7 has 1).
        temperature: temperature of a contrastive loss that has one.
        source_share: share of the pairs of a batch whose source the learner reads, too, spread evenly over it. An
            encoder that knows the pivot language already learns from translations what it lacks, at half the cost.
        match_weight: weight of the squared error; with 0 the student learns similarities alone, on axes of its own.
        dimensions: numbers d, ascending, to the first of which vectors are cut to learn the teacher's similarities,
            too (`metasearch.learners.losses.matryoshka`); none by default.
        dimension_weights: weight of each of them, by default 1; the term is their mean.
        spread_weight: weight of the term that turns vectors of unrelated texts away from each other
            (`metasearch.learners.losses.spread_out`).
    """

    output: Output = "pooled"
    target: Literal["source", "own"] = "source"
    contrast: str = "none"
    contrast_weight: NonNegative = 1.0
    temperature: Rate = 0.05
    source_share: Annotated[float, Field(ge=0, le=1)] = 1.0
    match_weight: NonNegative = 1.0
    dimensions: tuple[Positive, ...] = ()
    dimension_weights: tuple[NonNegative, ...] = ()
    spread_weight: NonNegative = 0.0

    @field_validator("contrast")
    @classmethod
    def _known(cls, kind: str) -> str:
        kinds = [n.removeprefix(CONTRAST) for n in registry.names("losses") if n.startswith(CONTRAST)]
        if kind not in ("none", *kinds):
            raise ValueError(f"no such contrastive loss.{nearest(kind, ['none', *kinds])}")
        return kind

    @field_validator("dimensions")
    @classmethod
    def _ascending(cls, given: tuple[int, ...]) -> tuple[int, ...]:
        if given != (right := tuple(sorted(set(given)))):
            raise ValueError(f"expected each number once, the smallest first: {list(right)}")
        return given

    @model_validator(mode="after")
    def _a_weight_each(self) -> "DistillOptions":
        weights, cuts = len(self.dimension_weights), len(self.dimensions)
        if weights not in (0, cuts):
            raise Contradiction(f"{weights} weights for {cuts} dimensions; give one for each", "dimension_weights")
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return what a file holds; terms that came later are left out where they are not asked for."""
        unset = (("match_weight", 1.0), ("dimensions", ()), ("dimension_weights", ()), ("spread_weight", 0.0))
        return {key: list(v) if isinstance(v, tuple) else v for key, v in write(self).items() if (key, v) not in unset}
