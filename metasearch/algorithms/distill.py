"""Multi-stage distillation: teach an encoder a frozen encoder's embeddings, in several languages.

Stages 1, 3 and 4 of Ding et al. (2022) differ in who teaches, in what a translation is compared with, and in the
contrastive term; stage 2 does the same to the output of the embedding block (equations 2 to 7). The paper writes the
error as a squared norm, `D` times as much as its authors' code, which takes the mean over dimensions as we do; the
difference is the weight against the contrastive term.

    L = M + contrast_weight · C + R

M is the squared error, C the contrastive loss and R the Matryoshka term (`metasearch.algorithms.distill`). R
compares all n vectors of a batch that the student computes: the translations, then the sources that it reads.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, field_serializer, field_validator
from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.base import OuterLoss, Outputs, Targets, TargetSpec, TextLearner
from metasearch.algorithms.losses import base
from metasearch.algorithms.losses.base import cosines
from metasearch.algorithms.sets import numbered
from metasearch.config import registry
from metasearch.config.base import FrozenConfig, NonNegative, Positive, Rate
from metasearch.config.recipe import Loss
from metasearch.data.records import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.errors import ConfigError, nearest

CONTRAST = "contrast-"
"""What the names of contrastive losses begin with."""


class DistillOptions(FrozenConfig):
    """Hyper-parameters of a stage.

    Attributes:
        output: compared output; `pooled` is the paper's sentence vector, `sentence` its unit vector, `embedding` the
            paper's stage 2, and `states` the last layer's output at every token.
        target: translations are compared with the frozen encoder's vector of the `source` text (equations 2 and 6), or
            of the translation's `own` (equations 3 and 4), which it must be able to read.
        contrast: kind of the contrastive loss, `soft`, `bool`, `ce`, `ce-hard` or `infonce`
            (`metasearch.algorithms.losses.contrast`), or `none`.
        contrast_weight: weight of that loss against the squared error (equation 7 has 1).
        temperature: temperature of a contrastive loss that has one.
        source_share: share of the pairs of a batch whose source the learner reads too, spread evenly over it. An
            encoder that knows the pivot language learns more from translations, at half the cost.
        dimensions: ascending sizes d; vectors truncated to their first d dimensions also learn the teacher's
            similarities (`matryoshka`). None by default.
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


class Distill(TextLearner):
    """Squared error to the frozen encoder's vectors, and, where asked for, terms of their similarities."""

    Options = DistillOptions
    options: DistillOptions
    data = ("parallel",)

    def __init__(self, encoder: Encoder, loss: Loss, options: DistillOptions, targets: Targets | None = None) -> None:
        self.check_encoder(options, encoder)
        super().__init__(encoder, loss, options, targets)
        self.contrast = contrast_of(options)

    @classmethod
    def wanted(cls, options: Any) -> TargetSpec:
        """Return the compared outputs, with translations if they have their own targets.

        `ConfigError` for options that do not fit together.
        """
        if options.output == "states" and options.target == "source":
            raise ConfigError("options.output: states of a translation have no counterpart; set options.target: own")
        for name in ("contrast", "dimensions"):
            value = getattr(options, name)
            if options.output == "states" and value != DistillOptions.model_fields[name].default:
                raise ConfigError(f"options.{name}: {value} is over sentences, options.output is not")
        contrast = contrast_of(options)
        if options.source_share < 1 and contrast and "source" in contrast.columns:
            raise ConfigError(f"options.source_share: contrast {options.contrast} reads every source; set it to 1")
        return TargetSpec(options.output, translations=options.target == "own")

    @classmethod
    def check_encoder(cls, options: Any, encoder: Encoder) -> None:
        """Raise `ConfigError` if vectors are to be truncated to more dimensions than they have."""
        if not options.dimensions:
            return
        width = encoder.dimension(options.output)
        if (most := max(options.dimensions)) > width:
            raise ConfigError(
                f"options.dimensions: {most}: vectors of '{encoder.name}' have {width} numbers; choose {width} at most"
            )

    def texts(self, pairs: Sequence[Translation]) -> list[str]:
        """Return the texts that are read, sources first."""
        return [pairs[i].source for i in self._read(pairs)] + [pair.target for pair in pairs]

    def loss(self, pairs: Sequence[Translation], outputs: Mapping[str, Outputs]) -> OuterLoss:
        """Return the squared error, means over translations and over sources, and the terms that are asked for."""
        options, read = self.options, self._read(pairs)
        student = outputs["student"]
        if options.output == "states":
            # Tokens stand text after text, and so do their targets.
            loss = F.mse_loss(student.rows, self._targets(student.texts, student.rows))
            return OuterLoss(loss, {"match": loss.item()})
        sources, targets = ([pair.texts[side] for pair in pairs] for side in (0, 1))
        teacher = self._targets(sources, student.rows)
        own = teacher if options.target == "source" else self._targets(targets, student.rows)
        target = student[targets]
        match = F.mse_loss(target, own)
        vectors, taught = {"teacher": teacher, "target": target}, [own]
        # The mean of no rows would be NaN.
        if read:
            vectors["source"] = student[[sources[i] for i in read]]
            taught.append(teacher[torch.tensor(read, device=teacher.device)])
            # The mean over sources that are read, times their share: the others count as if they had no error.
            match = match + options.source_share * F.mse_loss(vectors["source"], taught[1])
        terms = {"match": (1.0, match)}
        if self.contrast:
            # Equal texts have equal numbers, as a translation of the same source is no negative.
            number = numbered(sources)
            texts = {"source": torch.tensor([number[text] for text in sources], device=target.device)}
            term = self.contrast(base.EmbeddedSet(vectors, texts))
            terms["contrast"] = (options.contrast_weight, term)
        if options.dimensions:
            made = torch.cat([vectors[name] for name in ("target", "source") if name in vectors])
            terms["matryoshka"] = (1.0, matryoshka(torch.cat(taught), made, options.dimensions))
        first, *others = (weight * term for weight, term in terms.values())
        return OuterLoss(sum(others, start=first), {name: term.item() for name, (_, term) in terms.items()})

    def _read(self, pairs: Sequence[Translation]) -> list[int]:
        """Return the indices of pairs whose source is read, evenly spread."""
        share = self.options.source_share
        # Pair i is read where i · share passes a whole number: ⌊n · share⌋ of n pairs.
        return [i for i in range(len(pairs)) if int((i + 1) * share) > int(i * share)]

    def _targets(self, texts: Sequence[str], outputs: Tensor) -> Tensor:
        if self.targets is None:
            raise ConfigError(
                "learner 'distill' needs a frozen encoder to learn from; name it in the stage under `against`"
            )
        vectors = torch.from_numpy(self.targets.vectors(texts)).to(outputs.device, outputs.dtype)
        if vectors.shape[-1] != outputs.shape[-1]:
            raise ConfigError(
                f"the frozen encoder's vectors have {vectors.shape[-1]} dimensions, the learner's {outputs.shape[-1]}"
            )
        return vectors


def contrast_of(options: DistillOptions) -> base.Loss | None:
    """Return a stage's contrastive loss, or None."""
    if options.contrast == "none":
        return None
    kind: type[base.Loss] = registry.load("losses", CONTRAST + options.contrast).LOSS
    known = {"temperature": options.temperature} if "temperature" in kind.Options.model_fields else {}
    return kind(kind.Options(**known))


# Similarities of truncated embeddings (Matryoshka, Kusupati et al. 2022, arXiv:2205.13147).
#
# Kusupati et al. take the loss of a task for each truncated vector. The task of a distillation is the teacher's vector,
# which cannot be truncated along: the order of its dimensions means nothing. The similarities between the teacher's
# vectors depend neither on that order nor on the number of dimensions (similarity-preserving distillation, Tung & Mori
# 2019). So the truncated vectors learn these.


def matryoshka(teacher: Tensor, student: Tensor, dimensions: Sequence[int]) -> Tensor:
    """Return R = 1/|K| Σ_d∈K 1/n² Σ_ij (cos(y_i, y_j) − cos(x_i[:d], x_j[:d]))², a scalar.

    y are the teacher's vectors `(n, T)`, x the student's `(n, D)` for the same texts, and K the dimensions.
    """
    wanted = cosines(teacher, teacher)
    # A cosine normalises the truncated vectors.
    errors = [F.mse_loss(cosines(student[:, :d], student[:, :d]), wanted) for d in dimensions]
    return sum(errors, start=wanted.new_zeros(())) / len(dimensions)


LEARNER = Distill
