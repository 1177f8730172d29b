"""A query adapter in closed form: directions in which a query and its right answers differ count less.

With the unit vector o of the offset, which is the difference of the mean document from the mean query, and the second
moment S of the answers, scaled to a mean eigenvalue of 1:

    A = (I + ω o oᵀ + α S)⁻¹

The offset needs no answers. Answers are differences of right passages from their queries, less their mean. Their weight
α grows with the number n of queries: α = ¼ n / (n + 128).

The score of a passage d is then qᵀ A d. This is within-class covariance normalisation (Hatch et al. 2006,
"Within-Class Covariance Normalization for SVM-based Speaker Recognition"), with shrinkage to the identity, and on the
side of queries alone.
"""

from collections.abc import Sequence

import numpy as np

from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.maps import ROUNDING
from metasearch.encoders.protocols import TextEncoder
from metasearch.search.index.maps import Vectors, second_moment
from metasearch.search.tune.steps import READS_ANSWERS

OFFSET, ANSWERS = 20.0, 0.25
"""ω, and α for very many queries; chosen on two draws of titles of GNOME help: docs/results/adaptation.md."""
_HALF = 128
"""Queries with which answers have half of their weight."""


def metric_adapter(offset: Vectors, answers: Vectors, queries: int = 0) -> Vectors:
    """Return the matrix A, `(D, D)`; it is the identity where there is no difference beyond rounding.

    Args:
        offset: mean document less mean query, `(D,)`.
        answers: differences of right passages from their queries, `(a, D)`; a may be 0.
        queries: number n of these queries.
    """
    inverse = np.eye(len(offset))
    if np.linalg.norm(offset) > ROUNDING:
        unit = offset.astype(np.float64) / np.linalg.norm(offset.astype(np.float64))
        inverse += OFFSET * np.outer(unit, unit)
    if len(answers):
        centred = answers.astype(np.float64) - answers.mean(0, dtype=np.float64)
        centred[np.linalg.norm(centred, axis=1) <= ROUNDING] = 0
        inverse += ANSWERS * queries / (queries + _HALF) * second_moment(centred)
    return np.linalg.inv(inverse).astype(np.float32)


def learn_adapter(encoder: TextEncoder, passages: Sequence[Candidate], form: str, data: RetrievalData) -> Vectors:
    """Return the matrix of an adapter from labels, `(D, D)`.

    Args:
        encoder: gives the vectors of labelled queries and of passages.
        passages: that are searched.
        form: a key of `READS_ANSWERS`.
        data: the labels.
    """
    queries = encoder.encode([question.text for question in data.questions], "question")
    documents = encoder.encode([each.text for each in passages], "candidate")
    offset = np.asarray(documents.mean(0, dtype=np.float64), np.float32) - queries.mean(0)
    answers = _find_answers(encoder, data, queries) if READS_ANSWERS[form] else queries[:0]
    return metric_adapter(offset, answers, len(queries))


def _find_answers(encoder: TextEncoder, data: RetrievalData, queries: Vectors) -> Vectors:
    """Return the differences of the nearest passages of right pages from their queries, `(a, D)`."""
    pages: dict[str, dict[str, list[str]]] = {}
    for each in data.candidates:
        for uid in each.answers:
            pages.setdefault(uid, {}).setdefault(each.page, []).append(each.text)
    found = []
    for question, query in zip(data.questions, queries, strict=True):
        for texts in pages[question.id].values():
            own = encoder.encode(texts, "candidate")
            found.append(own[int((own @ query).argmax())] - query)
    return np.stack(found)
