"""Reranks passages with a cross-encoder, which reads a query and a passage together (Nogueira & Cho 2019).

A cross-encoder is slower than an encoder by the number of passages and usually more exact, so that it scores only the
best passages of a first search.
"""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from torch import nn

from metasearch.encoders.cross_encoder import load_cross_encoder
from metasearch.errors import NonFiniteError

BATCH = 32
"""Pairs of a query and a passage that are read at once."""

log = logging.getLogger(__name__)


class Reranker:
    """Scores passages for a query with a sentence-transformers `CrossEncoder` of one score.

    Args:
        model: the cross-encoder.
        name: its name in messages.
    """

    def __init__(self, model: CrossEncoder, name: str) -> None:
        self.model = model
        self.name = name
        self._warned = False

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the raw score (logit) of each text for a query, `(len(texts),)`; equal texts have equal scores.

        Raises:
            NonFiniteError: a score is NaN or infinite.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros(0, np.float32)
        self._warn_of_truncation(query, distinct)
        # Without a sigmoid, which gives 1.0 to all scores above 17 and so ties that are none.
        values = self.model.predict(
            [(query, text) for text in distinct], batch_size=BATCH, activation_fn=nn.Identity(), show_progress_bar=False
        )
        found = np.asarray(values, np.float32)
        if not np.isfinite(found).all():
            wrong = distinct[int(np.argmin(np.isfinite(found)))]
            raise NonFiniteError(
                f"reranker '{self.name}': the score of '{wrong[:60]}' for '{query[:60]}' is not finite"
            )
        return found[[distinct.index(text) for text in texts]] if len(distinct) < len(texts) else found

    def _warn_of_truncation(self, query: str, texts: Sequence[str]) -> None:
        """Log once that the reranker truncates pairs."""
        limit, tokenizer = self.model.max_seq_length, getattr(self.model, "tokenizer", None)
        if self._warned or limit is None or tokenizer is None:
            return
        tokens = tokenizer([query] * len(texts), list(texts), truncation=False)["input_ids"]
        if cut := sum(len(each) > limit for each in tokens):
            self._warned = True
            log.warning(
                "reranker '%s' reads %d tokens of a query and a passage; it truncates %d of %d passages of this query, "
                "and others without a further line", self.name, limit, cut, len(texts),
            )  # fmt: skip


def open_reranker(name: str, device: torch.device, trust_remote_code: bool = False) -> Reranker:
    """Load a reranker from a local folder or by its hub name; errors as in `load_cross_encoder`."""
    return Reranker(load_cross_encoder(name, device, trust_remote_code, "reranker"), name)
