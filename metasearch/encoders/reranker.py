"""Reranks passages with a cross-encoder, which reads a query and a passage together (Nogueira & Cho 2019).

A cross-encoder is slower than an encoder by the number of passages and usually more exact, so that it scores only the
best passages of a first search.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from torch import nn

from metasearch.config import registry
from metasearch.encoders.loading import recorded, require_fit
from metasearch.encoders.open import is_path, only_cached, quiet
from metasearch.errors import ConfigError, EncoderError, NonFiniteError, first_line

BATCH = 32
"""Pairs of a query and a passage that are read at once."""

log = logging.getLogger(__name__)


class Reranker:
    """Scores passages for a query with a sentence-transformers `CrossEncoder` of one score.

    Args:
        model: the cross-encoder.
        name: its name in messages.

    Raises:
        EncoderError: the model gives several scores for a pair, such as one for each class.
    """

    def __init__(self, model: CrossEncoder, name: str) -> None:
        if model.num_labels != 1:
            raise EncoderError(f"reranker '{name}' gives {model.num_labels} scores for a pair; a reranker gives one")
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
    """Load a cross-encoder in float32 from a local folder or by its hub name.

    Raises:
        EncoderError: there is no such model, it is no cross-encoder, or it cannot be loaded.
        ConfigError: the name is that of a built-in encoder.
    """
    local = Path(name).is_dir()
    if not local and name in registry.names("encoders"):
        raise ConfigError(
            f"--rerank {name}: '{name}' is an encoder; a reranker is a sentence-transformers CrossEncoder"
        )
    if not local and (is_path(name) or Path(name).exists()):
        raise EncoderError(f"reranker '{name}': no such folder")
    quiet()
    offline = local or only_cached(name, "reranker")
    try:
        with recorded() as loaded, torch.random.fork_rng(devices=[]):
            model = CrossEncoder(
                name,
                device=str(device),
                local_files_only=offline,
                trust_remote_code=trust_remote_code,
                model_kwargs={"dtype": torch.float32},
            )
    except Exception as error:  # the libraries below raise anything from OSError to bare Exception
        raise EncoderError(_why(name, error)) from error
    heads = [key for each in loaded for key in each.missing]
    if heads:
        raise EncoderError(
            f"reranker '{name}' is no cross-encoder: it has no weights '{heads[0]}', which score a pair of texts. An "
            "encoder cannot rerank; take a sentence-transformers CrossEncoder"
        )
    require_fit(f"reranker '{name}'", loaded, pooled=True)
    return Reranker(model, name)


def _why(name: str, error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return f"reranker '{name}' comes with its own Python code; pass --trust-remote-code if you trust its source"
    return f"reranker '{name}' cannot be loaded as a sentence-transformers CrossEncoder: {first_line(error)}"
