"""Terms that align questions with their translations, beside a loss of retrieval.

Hong et al. (2026, "Improving Semantic Proximity in Information Retrieval through Cross-Lingual Alignment",
arXiv:2604.05684) add a Jensen-Shannon divergence between languages to InfoNCE. We know summaries of the paper alone,
not its equations: what the two distributions range over is defined here, and is ours.

Notation used for tensor shapes: B examples in a set, C candidate texts, D dimensions of an embedding.
"""

import math

import torch
from torch import Tensor

from metasearch.algorithms.losses.base import cosines
from metasearch.algorithms.losses.in_batch import infonce, wrong_answers


def contrast(questions: Tensor, translations: Tensor, asked: Tensor, said: Tensor, temperature: float) -> Tensor:
    """Return (L(q → t) + L(t → q)) / 2, L the InfoNCE of finding example i's own one among those of all examples.

    Each way, other translations of the same question, repeated texts and the text itself are no wrong ones.

    Args:
        questions: vectors q `(B, D)`.
        translations: vectors t of a translation of each `(B, D)`.
        asked: numbers of the questions' texts `(B,)`.
        said: numbers of the translations' texts `(B,)`, equal to that of a question of the same text.
        temperature: τ, divisor of the cosines.
    """
    # Two languages may spell something alike; nothing is told from itself.
    other = asked.unsqueeze(1) != said.unsqueeze(0)
    there = infonce(questions, translations, wrong_answers(asked, said) & other, temperature)
    back = infonce(translations, questions, wrong_answers(said, asked) & other.T, temperature)
    return (there + back) / 2


def divergence(questions: Tensor, translations: Tensor, candidates: Tensor, temperature: float) -> Tensor:
    """Return the mean over examples of the Jensen-Shannon divergence between what q and its translation t would find.

        p_i(c) = softmax_c(cos(q_i, c) / τ),  r_i(c) = softmax_c(cos(t_i, c) / τ),  m_i = (p_i + r_i) / 2
        1/B Σ_i 1/2 Σ_c (p_i(c) ln(p_i(c) / m_i(c)) + r_i(c) ln(r_i(c) / m_i(c)))

    It is 0 where p = r, and at most ln 2 (Lin 1991, "Divergence measures based on the Shannon entropy").

    Args:
        questions: vectors q `(B, D)`.
        translations: vectors t of a translation of each `(B, D)`.
        candidates: vectors c of the distinct candidate texts of the set `(C, D)`.
        temperature: τ, divisor of the cosines.
    """
    p, r = (
        torch.log_softmax(cosines(vectors, candidates) / temperature, dim=1) for vectors in (questions, translations)
    )
    middle = torch.logaddexp(p, r) - math.log(2)
    return (p.exp() * (p - middle) + r.exp() * (r - middle)).sum(1).mean() / 2
