"""Teaches an encoder the vectors of a frozen one, in several languages: a stage of multi-stage distillation.

Stages 1, 3 and 4 of Ding et al. (2022) differ in who teaches, in what a translation is compared with, and in the
contrastive term; stage 2 does the same to the output of the embedding block (equations 2 to 7).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Output
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError
from metasearch.fast import Fast
from metasearch.learners.base import Learner, OuterLoss
from metasearch.learners.losses.distillation import Contrast, contrast, match
from metasearch.learners.targets import Wanted
from metasearch.spec.recipe import Declared, NonNegative, Rate


class Distill(Learner):
    """Squared error to the frozen encoder's vectors, and, where asked for, a multilingual contrastive loss."""

    class Options(Declared):
        """Hyper-parameters of a stage.

        Attributes:
            output: what is compared; `pooled` is the paper's sentence vector, `sentence` its unit vector, `embedding`
                the paper's stage 2, `tokens` the same at every token.
            target: what a translation is compared with: the frozen encoder's vector of the `source` text (equations 2
                and 6), or of the translation's `own` (equations 3 and 4), which it must be able to read.
            contrast: kind of the contrastive loss; see `metasearch.learners.losses.distillation.contrast`.
            contrast_weight: of that loss against the squared error (equation 7 has 1).
            temperature: of `contrast: ce` and `infonce`.
            source_share: share of the pairs of a batch whose source the learner reads, too, spread evenly over it. An
                encoder that knows the pivot language already learns from translations what it lacks, at half the cost.
        """

        output: Output = "pooled"
        target: Literal["source", "own"] = "source"
        contrast: Contrast = "none"
        contrast_weight: NonNegative = 1.0
        temperature: Rate = 0.05
        source_share: Annotated[float, Field(ge=0, le=1)] = 1.0

    links = (1,)
    data = ("parallel",)

    @classmethod
    def wanted(cls, options: Any) -> Wanted:
        """Return the outputs that are compared, of the translations too where they have targets of their own."""
        if options.output == "tokens" and options.target == "source":
            raise ConfigError(
                "options.output: tokens of a translation have no counterpart; it needs options.target: own"
            )
        if options.output == "tokens" and options.contrast != "none":
            raise ConfigError(f"options.contrast: '{options.contrast}' is over sentences, options.output is not")
        if options.source_share < 1 and (options.output == "tokens" or options.contrast in ("soft", "bool", "ce")):
            what = "output tokens" if options.output == "tokens" else f"contrast {options.contrast}"
            raise ConfigError(f"options.source_share: {what} needs every source read, which is 1")
        return Wanted(options.output, translations=options.target == "own")

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return the loss of a batch of translations; both languages go through the encoder together."""
        row = self._rows(episodes)
        outputs = self.encoder.embedder(self.encoder.features(list(row), "text"), self.options.output)
        # In bfloat16 errors would be rounded away.
        return self._outer(episodes, row, outputs.to(next(self.encoder.embedder.parameters()).dtype))

    def fast_gradient(self, episodes: Sequence[Episode], fast: Fast, bf16: bool) -> OuterLoss:
        """Do the same on the fast engine."""
        row = self._rows(episodes)
        return self.of_texts(
            fast, list(row), self.options.output, bf16, lambda outputs: self._outer(episodes, row, outputs)
        )

    def _outer(self, episodes: Sequence[Episode], row: Mapping[str, int], outputs: Tensor) -> OuterLoss:
        """Return the loss of outputs, of which each text has a row."""
        if self.options.output == "tokens":
            loss = match(outputs, self._targets(list(row), outputs))
            return OuterLoss(loss, {"match": loss.item()})
        return self._loss(_pairs(episodes), row, outputs)

    def _loss(self, pairs: Sequence[Translation], row: Mapping[str, int], outputs: Tensor) -> OuterLoss:
        options, read = self.options, self._read(pairs)
        wanted = self._targets([pair.source for pair in pairs], outputs)
        of_target = wanted if options.target == "source" else self._targets([pair.target for pair in pairs], outputs)
        target = outputs[_numbers([row[pair.target] for pair in pairs], outputs)]
        loss, source = match(target, of_target), target
        if read:
            source = outputs[_numbers([row[pairs[i].source] for i in read], outputs)]
            loss = loss + options.source_share * match(source, wanted[_numbers(read, outputs)])
        terms = {"match": loss.item()}
        if options.contrast != "none":
            same = _same([pair.source for pair in pairs], outputs)
            term = contrast(options.contrast, wanted, source, target, same, options.temperature)
            loss = loss + options.contrast_weight * term
            terms["contrast"] = term.item()
        return OuterLoss(loss, terms)

    def _rows(self, episodes: Sequence[Episode]) -> dict[str, int]:
        """Number the distinct texts that are read, sources first."""
        pairs = _pairs(episodes)
        sources = [pairs[i].source for i in self._read(pairs)]
        return {text: i for i, text in enumerate(dict.fromkeys(sources + [pair.target for pair in pairs]))}

    def _read(self, pairs: Sequence[Translation]) -> list[int]:
        """Return the numbers of the pairs whose source is read, evenly spread."""
        share = self.options.source_share
        return [i for i in range(len(pairs)) if int((i + 1) * share) > int(i * share)]

    def _targets(self, texts: Sequence[str], outputs: Tensor) -> Tensor:
        if self.targets is None:
            raise ConfigError(
                "learner 'distill' needs a frozen encoder to learn from; a stage names it under `against`"
            )
        found = torch.from_numpy(self.targets.vectors(texts)).to(outputs.device, outputs.dtype)
        if found.shape[-1] != outputs.shape[-1]:
            raise ConfigError(
                f"the frozen encoder's vectors have {found.shape[-1]} dimensions, the learner's {outputs.shape[-1]}"
            )
        return found


def _pairs(episodes: Sequence[Episode]) -> list[Translation]:
    return [pair for episode in episodes for pair in episode.sets[0].examples]


def _same(sources: Sequence[str], outputs: Tensor) -> Tensor:
    """Return whether the sources of two pairs are the same text, `(N, N)`."""
    first = {text: i for i, text in reversed(list(enumerate(sources)))}
    numbers = _numbers([first[text] for text in sources], outputs)
    return numbers.unsqueeze(1) == numbers.unsqueeze(0)


def _numbers(rows: Sequence[int], outputs: Tensor) -> Tensor:
    return torch.tensor(rows, dtype=torch.long, device=outputs.device)


LEARNER = Distill
