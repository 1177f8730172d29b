"""An encoder of metasearch as a model of mteb, with prompt and length of each role. Needs the extra `mteb`.

Example:
    import mteb
    import metasearch as ms
    from metasearch.mteb import MetasearchModel

    mteb.evaluate(MetasearchModel(ms.load_encoder("mini-e5")), mteb.get_tasks(["STS17"]))
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.config.extras import import_extra
from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import CachedEncoder

_ROLES: Mapping[str | None, Role] = {"query": "question", "document": "candidate", None: "text"}
"""mteb's type of a prompt → role."""


class MetasearchModel:
    """An encoder as mteb calls it (`mteb.models.EncoderProtocol`).

    Each role has its own prompt and length; a saved model in mteb's own wrapper has one length. A text is encoded once
    for all subsets of a task.

    Args:
        encoder: encoder to score.
        revision: revision in mteb's results, which mteb keeps by name and revision; by default the fingerprint of the
            encoder, its precision, and the lengths of queries, documents and texts in tokens.
        **options: accepted for mteb and not used.
    """

    def __init__(self, encoder: Encoder, revision: str | None = None, **options: Any) -> None:
        self.encoder = encoder
        self._revision = revision
        self._cached = CachedEncoder(encoder)

    @property
    def revision(self) -> str:
        """The revision in mteb's results."""
        lengths = [str(self.encoder.limit(role)) for role in _ROLES.values()]
        return self._revision or "-".join([self.encoder.fingerprint, self.encoder.precision, *lengths])

    def encode(
        self, inputs: Iterable[Mapping[str, list[str]]], *, prompt_type: Any = None, **options: Any
    ) -> NDArray[np.float32]:
        """Return the unit vectors of texts in the role of their prompt, `(N, D)`; mteb's other options are not used."""
        role = _ROLES[getattr(prompt_type, "value", prompt_type)]
        return self._cached.encode([text for batch in inputs for text in batch["text"]], role)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of unit vectors `(N, D)` and `(M, D)`, `(N, M)`."""
        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return one @ two.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of unit vectors in pairs, `(N,)`."""
        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return (one * two).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """The facts that mteb keeps of a model; unknown ones are None."""
        meta = import_extra("mteb.models.model_meta", "mteb", "a model of mteb")
        facts = {
            "name": f"metasearch/{Path(self.encoder.name).name}",
            "revision": self.revision,
            "n_parameters": self.encoder.parameter_count,
            "memory_usage_mb": self.encoder.size / 2**20,
            "max_tokens": max(self.encoder.limit(role) for role in _ROLES.values()),
            "embed_dim": self.encoder.dimension(),
            "framework": ["Sentence Transformers", "PyTorch"],
            "similarity_fn_name": meta.ScoringFunction.COSINE,
            "use_instructions": any(self.encoder.prompt(role) for role in _ROLES.values()),
        }
        return meta.ModelMeta.create_empty(facts)
