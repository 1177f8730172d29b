"""InfoNCE in the batch (van den Oord et al. 2018, equation 4): each question is to find its answer among all texts."""

import math
from typing import Literal

import torch
from torch import Tensor

from metasearch.algorithms.losses.base import (
    EmbeddedSet,
    Loss,
    Temperature,
    cosines,
    equal_texts,
    infonce,
)

# Terms that align questions with their translations, beside a loss of retrieval.
#
# Hong et al. (2026, "Improving Semantic Proximity in Information Retrieval through Cross-Lingual Alignment",
# arXiv:2604.05684) add a Jensen-Shannon divergence between languages to InfoNCE. We know summaries of the paper alone,
# not its equations: what the two distributions range over is defined here, and is ours.
#
# Notation used for tensor shapes: B examples in a set, C candidate texts, D dimensions of an embedding.


def contrast(questions: Tensor, translations: Tensor, asked: Tensor, said: Tensor, temperature: float) -> Tensor:
    """Return (L(q → t) + L(t → q)) / 2, where L is the InfoNCE for finding example i among all examples.

    Questions q and translations t are `(B, D)`, `asked` and `said` the numbers of their texts `(B,)`. Other
    translations of the same question, repeated texts and the text itself are no wrong ones.
    """
    # Two languages may spell a text alike; a text is no negative of itself.
    other = asked.unsqueeze(1) != said.unsqueeze(0)
    there = infonce(questions, translations, _wrong_answers(asked, said) & other, temperature)
    back = infonce(translations, questions, _wrong_answers(said, asked) & other.T, temperature)
    return (there + back) / 2


def divergence(questions: Tensor, translations: Tensor, candidates: Tensor, temperature: float) -> Tensor:
    """Return the mean Jensen-Shannon divergence between rankings for q and its translation t.

        p_i(c) = softmax_c(cos(q_i, c) / τ),  r_i(c) = softmax_c(cos(t_i, c) / τ),  m_i = (p_i + r_i) / 2
        1/B Σ_i 1/2 Σ_c (p_i(c) ln(p_i(c) / m_i(c)) + r_i(c) ln(r_i(c) / m_i(c)))

    It is 0 where p = r, and at most ln 2 (Lin 1991, "Divergence measures based on the Shannon entropy"). Candidates c
    are the distinct candidate texts of the set `(C, D)`; q and t are `(B, D)`.
    """
    p, r = (
        torch.log_softmax(cosines(vectors, candidates) / temperature, dim=1) for vectors in (questions, translations)
    )
    middle = torch.logaddexp(p, r) - math.log(2)
    return (p.exp() * (p - middle) + r.exp() * (r - middle)).sum(1).mean() / 2


class InfoNCE(Loss):
    """−1/B Σ_i log (exp(cos(q_i, p_i)/τ) / Σ_c exp(cos(q_i, c)/τ)), c = p_i and every wrong answer to question i.

    Wrong answers are the distinct texts among the positives of other questions and all negatives, less every text that
    is labelled as an answer to the question. `align` adds `contrast` or `divergence`, which align questions with their
    translations.
    """

    class Options(Temperature):
        """Temperature τ, and the alignment of questions with their translations.

        Attributes:
            align: `infonce`: a question and its translation find each other in the set; `jsd`: the two have
                the same distribution over the candidates of the set.
        """

        align: Literal["none", "infonce", "jsd"] = "none"

    options: Options
    columns = ("question", "positive")

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that it needs: translations, too, where it aligns."""
        return self.columns if self.options.align == "none" else (*self.columns, "translation")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of `question`, `positive` and, if present, `negative` and `translation`, each `(B, D)`."""
        answers = [name for name in ("positive", "negative") if name in batch.vectors]
        texts = torch.cat([batch.texts[name] for name in answers])
        candidates = torch.cat([batch.vectors[name] for name in answers])
        wrong = _wrong_answers(batch.texts["question"], texts, batch.answers)
        loss = infonce(batch.vectors["question"], candidates, wrong, self.options.temperature)
        if self.options.align == "none":
            return loss
        question, translation, tau = batch.vectors["question"], batch.vectors["translation"], self.options.temperature
        if self.options.align == "jsd":
            return loss + divergence(question, translation, candidates[_first_of_equal(texts)], tau)
        return loss + contrast(question, translation, batch.texts["question"], batch.texts["translation"], tau)


def _wrong_answers(asked: Tensor, answers: Tensor, labelled: Tensor | None = None) -> Tensor:
    """Return the wrong answers for each question, `(N, M)`: distinct texts that are no example's answer to it.

    `asked` are numbers of the questions `(N,)`, `answers` of the answers `(M,)`, of which the first N belong to the
    examples. `labelled` says whether the text of a number is another answer of each example `(N, numbers)`.
    """
    own = equal_texts(answers)[: len(asked)]
    if labelled is not None:
        own = own | labelled[:, answers]
    # [i, c]: some example asks what example i asks, and has text c as an answer.
    # Booleans have no matrix product, and autocast does not change float64.
    right = (equal_texts(asked).double() @ own.double()) > 0
    return _first_of_equal(answers) & ~right


def _first_of_equal(texts: Tensor) -> Tensor:
    """Return a mask `(N,)` for the first text in each group with equal texts."""
    # Below the diagonal are those before a text.
    return ~equal_texts(texts).tril(-1).any(dim=1)


LOSS = InfoNCE
