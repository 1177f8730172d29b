"""Teaches an encoder the vectors of a frozen one, in several languages: a stage of multi-stage distillation.

Stages 1, 3 and 4 of Ding et al. (2022) differ in who teaches, in what a translation is compared with, and in the
contrastive term; stage 2 does the same to the output of the embedding block (equations 2 to 7). The paper writes the
error as a squared norm, `D` times as much as its authors' code, which takes the mean over dimensions as we do; the
difference is the weight against the contrastive term.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor
from torch.nn import functional as F

from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder, Output
from metasearch.errors import ConfigError, nearest
from metasearch.learners.base import OuterLoss, Targets, Wanted
from metasearch.learners.losses import base
from metasearch.learners.sets import numbered
from metasearch.learners.texts import RowOf, TextLearner, rows
from metasearch.spec import registry
from metasearch.spec.declared import Declared, NonNegative, Rate
from metasearch.spec.recipe import Loss

_CONTRAST = "contrast-"
"""What the names of contrastive losses begin with."""


class Distill(TextLearner):
    """Squared error to the frozen encoder's vectors, and, where asked for, a multilingual contrastive loss."""

    class Options(Declared):
        """Hyper-parameters of a stage.

        Attributes:
            output: what is compared; `pooled` is the paper's sentence vector, `sentence` its unit vector, `embedding`
                the paper's stage 2, `tokens` the same at every token.
            target: what a translation is compared with: the frozen encoder's vector of the `source` text (equations 2
                and 6), or of the translation's `own` (equations 3 and 4), which it must be able to read.
            contrast: kind of the contrastive loss, `soft`, `bool`, `ce` or `infonce`, each a file
                `metasearch.learners.losses.contrast_<kind>`; `none` has no such term.
            contrast_weight: weight of that loss against the squared error (equation 7 has 1).
            temperature: temperature of a contrastive loss that has one.
            source_share: share of the pairs of a batch whose source the learner reads, too, spread evenly over it. An
                encoder that knows the pivot language already learns from translations what it lacks, at half the cost.
        """

        output: Output = "pooled"
        target: Literal["source", "own"] = "source"
        contrast: str = "none"
        contrast_weight: NonNegative = 1.0
        temperature: Rate = 0.05
        source_share: Annotated[float, Field(ge=0, le=1)] = 1.0

        @field_validator("contrast")
        @classmethod
        def _known(cls, kind: str) -> str:
            kinds = [n.removeprefix(_CONTRAST) for n in registry.names("losses") if n.startswith(_CONTRAST)]
            if kind not in ("none", *kinds):
                raise ValueError(f"no such contrastive loss.{nearest(kind, ['none', *kinds])}")
            return kind

    data = ("parallel",)
    learns_from = (Translation, "translations")

    def __init__(self, encoder: Encoder, loss: Loss, options: Options, targets: Targets | None = None) -> None:
        super().__init__(encoder, loss, options, targets)
        self.contrast = contrast_of(options)

    @classmethod
    def wanted(cls, options: Any) -> Wanted:
        """Return the outputs that are compared, of the translations too where they have targets of their own."""
        if options.output == "tokens" and options.target == "source":
            raise ConfigError(
                "options.output: tokens of a translation have no counterpart; it needs options.target: own"
            )
        if options.output == "tokens" and options.contrast != "none":
            raise ConfigError(f"options.contrast: '{options.contrast}' is over sentences, options.output is not")
        contrast = contrast_of(options)
        if options.source_share < 1 and (options.output == "tokens" or (contrast and "source" in contrast.columns)):
            what = f"contrast {options.contrast}" if contrast else "output tokens"
            raise ConfigError(f"options.source_share: {what} needs every source read, which is 1")
        return Wanted(options.output, translations=options.target == "own")

    def texts(self, pairs: Sequence[Translation]) -> list[str]:
        """Return the texts that are read, sources first."""
        return [pairs[i].source for i in self._read(pairs)] + [pair.target for pair in pairs]

    def loss_of(self, pairs: Sequence[Translation], row_of: RowOf, outputs: Tensor) -> OuterLoss:
        """Return the squared error, means over translations and over sources, and the contrastive loss."""
        options, read = self.options, self._read(pairs)
        # In bfloat16 errors would be rounded away.
        outputs = outputs.to(next(self.encoder.embedder.parameters()).dtype)
        if options.output == "tokens":
            # Tokens stand text after text in the order of `row_of`, and so do their targets.
            loss = F.mse_loss(outputs, self._targets(list(row_of), outputs))
            return OuterLoss(loss, {"match": loss.item()})
        sources, targets = ([pair.texts[side] for pair in pairs] for side in (0, 1))
        teacher = self._targets(sources, outputs)
        target = rows(row_of, targets, outputs)
        loss = F.mse_loss(target, teacher if options.target == "source" else self._targets(targets, outputs))
        vectors = {"teacher": teacher, "target": target}
        # The mean of no rows would be NaN.
        if read:
            source = rows(row_of, [sources[i] for i in read], outputs)
            # The mean over sources that are read, times their share: the others count as if they had no error.
            loss = loss + options.source_share * F.mse_loss(source, teacher[torch.tensor(read, device=outputs.device)])
            vectors["source"] = source
        terms = {"match": loss.item()}
        if self.contrast:
            # Pairs of the same source are not to be told apart by a contrastive loss.
            number = numbered(sources)
            same = torch.tensor([number[text] for text in sources], device=outputs.device)
            term = self.contrast(base.Embedded(vectors, {"source": same}))
            loss = loss + options.contrast_weight * term
            terms["contrast"] = term.item()
        return OuterLoss(loss, terms)

    def _read(self, pairs: Sequence[Translation]) -> list[int]:
        """Return the numbers of the pairs whose source is read, evenly spread."""
        share = self.options.source_share
        # Pair i is read where i · share passes a whole number: ⌊n · share⌋ of n pairs.
        return [i for i in range(len(pairs)) if int((i + 1) * share) > int(i * share)]

    def _targets(self, texts: Sequence[str], outputs: Tensor) -> Tensor:
        if self.targets is None:
            raise ConfigError(
                "learner 'distill' needs a frozen encoder to learn from; a stage names it under `against`"
            )
        vectors = torch.from_numpy(self.targets.vectors(texts)).to(outputs.device, outputs.dtype)
        if vectors.shape[-1] != outputs.shape[-1]:
            raise ConfigError(
                f"the frozen encoder's vectors have {vectors.shape[-1]} dimensions, the learner's {outputs.shape[-1]}"
            )
        return vectors


def contrast_of(options: Distill.Options) -> base.Loss | None:
    """Return the contrastive loss of a stage; None where it has none."""
    if options.contrast == "none":
        return None
    kind: type[base.Loss] = registry.load("losses", _CONTRAST + options.contrast).LOSS
    known = {"temperature": options.temperature} if "temperature" in kind.Options.model_fields else {}
    return kind(kind.Options(**known))


LEARNER = Distill
