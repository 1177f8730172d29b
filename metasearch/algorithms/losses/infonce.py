"""InfoNCE in the batch (van den Oord et al. 2018, equation 4): each question is to find its answer among all texts."""

from typing import Literal

import torch
from torch import Tensor

from metasearch.algorithms.losses.aligned import contrast, divergence
from metasearch.algorithms.losses.base import EmbeddedSet, Loss
from metasearch.algorithms.losses.in_batch import Temperature, first_of_equal, infonce, wrong_answers
from metasearch.config.base import NonNegative, Rate


class InfoNCE(Loss):
    """−1/B Σ_i log (exp(cos(q_i, p_i)/τ) / Σ_c exp(cos(q_i, c)/τ)), c = p_i and every wrong answer to question i.

    Wrong answers are the distinct texts among the positives of other questions and all negatives, less every text that
    is labelled as an answer to the question itself, whether the set has it as its positive or not. So other answers to
    it, their translations and repeated texts are not pushed away.

    With `align`, λ times a term of `metasearch.algorithms.losses.aligned` is added, which aligns questions with their
    translations.
    """

    class Options(Temperature):
        """Temperature τ, and what aligns questions with their translations.

        Attributes:
            align: `infonce`: a question and its translation find each other among those of the set; `jsd`: the two have
                the same distribution over the candidates of the set.
            align_weight: λ.
            align_temperature: temperature of that term; by default τ.
        """

        align: Literal["none", "infonce", "jsd"] = "none"
        align_weight: NonNegative = 1.0
        align_temperature: Rate | None = None

    options: Options
    columns = ("question", "positive")

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that it needs: translations, too, where it aligns."""
        return self.columns if self.options.align == "none" else (*self.columns, "translation")

    @property
    def idle(self) -> tuple[str, ...]:
        """Options of the alignment term that were changed although there is no such term."""
        fields = type(self).Options.model_fields
        changed = (name for name in _ALIGNS if getattr(self.options, name) != fields[name].default)
        return tuple(changed) if self.options.align == "none" else ()

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of the columns `question`, `positive` and, where there are, `negative` and `translation`.

        Each is of shape `(B, D)`.
        """
        answers = [name for name in ("positive", "negative") if name in batch.vectors]
        texts = torch.cat([batch.texts[name] for name in answers])
        candidates = torch.cat([batch.vectors[name] for name in answers])
        wrong = wrong_answers(batch.texts["question"], texts, batch.answers)
        loss = infonce(batch.vectors["question"], candidates, wrong, self.options.temperature)
        if self.options.align == "none":
            return loss
        return loss + self.options.align_weight * self._aligned(batch, candidates[first_of_equal(texts)])

    def _aligned(self, batch: EmbeddedSet, distinct: Tensor) -> Tensor:
        """Return the term that aligns; `distinct` are the vectors of different candidate texts `(C, D)`."""
        question, translation = batch.vectors["question"], batch.vectors["translation"]
        temperature = self.options.align_temperature or self.options.temperature
        if self.options.align == "jsd":
            return divergence(question, translation, distinct, temperature)
        return contrast(question, translation, batch.texts["question"], batch.texts["translation"], temperature)


_ALIGNS = ("align_temperature", "align_weight")
LOSS = InfoNCE
