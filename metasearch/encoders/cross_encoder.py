"""Cross-encoders, which read two texts together and give them one score, and reranking with one.

A cross-encoder is slower than an encoder and usually more accurate, so it scores only the best passages of a first
search (Nogueira & Cho 2019).
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from torch import nn

from metasearch.config import registry
from metasearch.data.formats.given import list_texts
from metasearch.encoders.loader_log import warnings_as_lines
from metasearch.encoders.open import is_path, only_cached, recorded, require_fit
from metasearch.encoders.random_state import seeded
from metasearch.errors import ConfigError, EncoderError, NonFiniteError, first_line
from metasearch.io import near

log = logging.getLogger(__name__)

BATCH = 32
"""Pairs of a query and a passage that are read at once."""


class Reranker:
    """Scores passages for a query with a sentence-transformers `CrossEncoder` of one score."""

    def __init__(self, model: CrossEncoder, name: str) -> None:
        self.model = model
        self.name = name
        self._warned = False
        self._truncating = Lock()
        """Held while pairs are read: truncation is a state of the tokenizer, which threads share."""

    def scores(self, query: str, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the raw score (logit) of each text for a query, `(len(texts),)`; equal texts have equal scores.

        `NonFiniteError` if a score is NaN or infinite.
        """
        texts = list_texts(texts)
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros(0, np.float32)
        pairs = [(query, text) for text in distinct]
        with self._truncating:
            self._warn_of_truncation(query, distinct)
            # Without a sigmoid, which gives 1.0 to all scores above 17 and so ties that are none.
            values = self.model.predict(pairs, batch_size=BATCH, activation_fn=nn.Identity(), show_progress_bar=False)
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
    """Load a sentence-transformers `CrossEncoder` of one score in float32, by local folder or hub name.

    Raises:
        EncoderError: there is no such model, it cannot be loaded, has several labels, or has not learnt to score.
        ConfigError: the name belongs to a built-in encoder.
    """
    what, local = f"reranker '{name}'", Path(name).is_dir()
    if not local and name in registry.names("encoders"):
        raise ConfigError(f"{what} is a built-in encoder; expected a sentence-transformers CrossEncoder")
    if not local and (is_path(name) or Path(name).exists()):
        raise EncoderError(f"{what}: no such folder{near(Path(name))}")
    offline = local or only_cached(name, "reranker")
    try:
        with warnings_as_lines(log, what), recorded() as loaded, seeded(0):
            model = CrossEncoder(
                name,
                device=str(device),
                local_files_only=offline,
                trust_remote_code=trust_remote_code,
                model_kwargs={"dtype": torch.float32},
            )
        labels = model.num_labels
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        raise EncoderError(f"{what} {_explain(error)}") from error
    # A checkpoint without a head, such as an encoder, gets a random one, whose scores mean nothing.
    if heads := [key for each in loaded for key in each.missing]:
        raise EncoderError(
            f"{what} is not a cross-encoder: it lacks the weights '{heads[0]}', which score a pair of texts"
        )
    if labels != 1:
        raise EncoderError(f"{what} has {labels} labels; expected a single score")
    require_fit(what, loaded, pooled=True)
    return Reranker(model, name)


def _explain(error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return "comes with its own Python code; pass --trust-remote-code if you trust its source"
    return f"cannot be loaded as a sentence-transformers CrossEncoder: {first_line(error)}"
