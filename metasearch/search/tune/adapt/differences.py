"""The differences of vectors from which a query adapter is computed, among the passages and labels of a search."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.protocols import TextEncoder
from metasearch.search.tune.adapt.metric import metric_adapter
from metasearch.search.tune.steps import READS_ANSWERS

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Differences:
    """Computes adapters for the vectors of an encoder.

    Attributes:
        encoder: of labelled queries and passages.
        passages: that are searched.
    """

    encoder: TextEncoder
    passages: tuple[Candidate, ...]

    def adapter(self, form: str, data: RetrievalData) -> Vectors:
        """Return the matrix of an adapter, a key of `READS_ANSWERS`, from labels, `(D, D)`."""
        queries = self.encoder.encode([question.text for question in data.questions], "question")
        offset = self._mean - queries.mean(0)
        answers = self._answers(data, queries) if READS_ANSWERS[form] else queries[:0]
        return metric_adapter(offset, answers, len(queries))

    def _answers(self, data: RetrievalData, queries: Vectors) -> Vectors:
        """Return the differences of the nearest passages of right pages from their queries, `(a, D)`."""
        pages: dict[str, dict[str, list[str]]] = {}
        for each in data.candidates:
            for uid in each.answers:
                pages.setdefault(uid, {}).setdefault(each.page, []).append(each.text)
        found = []
        for question, query in zip(data.questions, queries, strict=True):
            for texts in pages[question.id].values():
                own = self.encoder.encode(texts, "candidate")
                found.append(own[int((own @ query).argmax())] - query)
        return np.stack(found)

    @cached_property
    def _mean(self) -> Vectors:
        """The mean vector of the passages, `(D,)`."""
        vectors = self.encoder.encode([each.text for each in self.passages], "candidate")
        return np.asarray(vectors.mean(0, dtype=np.float64), np.float32)
