"""A frozen encoder with a trainable adapter of its query vectors; vectors of documents stay as they are.

Each text is encoded once by the frozen encoder. What is trained sees vectors of texts, not tokens, so a step takes
milliseconds. The saved model is the encoder with one module more: a `Router` of sentence-transformers, whose route
`query` is a linear map and a normalisation, and whose route `document` changes nothing.

Notation used for tensor shapes: n texts, D dimensions.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn

from metasearch.config.roles import MaxLength, Role
from metasearch.data.formats.given import list_texts
from metasearch.encoders.adapter import MatrixAdapter, QueryAdapter
from metasearch.encoders.encoder import Encoder, Output
from metasearch.errors import EncoderError

QUERY, DOCUMENT = "query", "document"
"""Routes of the saved model."""
ADAPTED, KEPT = "adapted", "kept"
"""Vectors that go through the adapter, and vectors that stay; the features of an adapted encoder."""


class AdaptedEmbedder(nn.Module):
    """The adapter as the trainable network of an encoder: vectors of the frozen encoder in, unit vectors out."""

    def __init__(self, adapter: QueryAdapter) -> None:
        super().__init__()
        self.adapter = adapter

    def forward(self, features: Mapping[str, Tensor], output: Output = "sentence") -> Tensor:
        """Return unit vectors `(n, D)`: the adapted ones, and behind them those that stay."""
        require_vectors(output)
        return torch.cat([self.adapter(features[ADAPTED]), features[KEPT]])


def require_vectors(output: Output) -> None:
    """Raise `EncoderError` for an output that an adapter does not have."""
    if output != "sentence":
        raise EncoderError(f"an adapter reads unit vectors of texts: its only output is sentence, not {output}")


class AdaptedEncoder(Encoder):
    """An encoder whose weights are frozen, and an adapter, which alone is trained.

    Args:
        base: the encoder; it does not change.
        adapter: maps vectors of queries, and with `pairs` also those of texts without a role, as in scored pairs.
        pairs: whether texts without a role are adapted; those of documents never are.

    Raises:
        EncoderError: the adapter is of another width.
    """

    def __init__(self, base: Encoder, adapter: QueryAdapter, pairs: bool = False) -> None:
        # It reads texts as its base does, with the same model, prompts and lengths, and checks of them are done.
        vars(self).update(vars(base))
        self._tokens, self._reported = {}, set()
        if adapter.dimension != base.dimension():
            raise EncoderError(
                f"{base.name} has {base.dimension()} dimensions, and its adapter {adapter.dimension}: they do not fit"
            )
        self.base = base
        like = next(base.embedder.parameters())
        self.embedder = AdaptedEmbedder(adapter.to(like)).eval()  # type: ignore[assignment]
        self.roles: frozenset[Role] = frozenset({"question", "text"} if pairs else {"question"})
        self._rows: dict[tuple[Role, str], int] = {}
        self._vectors = torch.zeros(0, adapter.dimension).to(like)
        """Remembered vectors `(N, D)` of the frozen encoder."""

    @property
    def adapter(self) -> QueryAdapter:
        """The adapter, with its present weights."""
        return cast(QueryAdapter, self.embedder.adapter)

    @property
    def parameter_count(self) -> int:
        """Number of weights, those of the adapter included."""
        return self.base.parameter_count + super().parameter_count

    @property
    def size(self) -> int:
        """Bytes of its weights, those of the adapter included."""
        return self.base.size + super().size

    @property
    def whole(self) -> SentenceTransformer:
        """The frozen encoder and the present adapter as one model, as it is saved."""
        matrix = self.adapter.matrix().detach().clone()
        dense = Dense(len(matrix), len(matrix), False, nn.Identity(), matrix)
        routes = {QUERY: [dense.to(matrix), Normalize()], DOCUMENT: []}
        model = copy.copy(self.model)
        model._modules = dict(model._modules)  # which a shallow copy shares
        model.append(Router(routes, default_route=QUERY if "text" in self.roles else DOCUMENT))
        return model

    def to(self, device: str | torch.device) -> "AdaptedEncoder":
        """Move the weights; returns itself."""
        self.base.to(device)
        self._vectors = self._vectors.to(device)
        super().to(device)
        return self

    def remember(self, texts: Sequence[str], role: Role, vectors: NDArray[np.float32] | None = None) -> None:
        """Keep the frozen encoder's vectors of distinct texts, `(n, D)`; without `vectors` they are computed.

        The last bits of a vector depend on the texts that are encoded together. So for the same bits in every run, the
        texts of a whole benchmark are remembered at once.
        """
        found = self._base_vectors(texts, role) if vectors is None else vectors
        start = len(self._vectors)
        self._vectors = torch.cat([self._vectors, torch.from_numpy(found).to(self._vectors)])
        self._rows |= {(role, text): start + i for i, text in enumerate(texts)}

    def vectors(self, texts: Iterable[tuple[Role, str]]) -> Tensor:
        """Return the frozen encoder's vectors for texts with their roles, `(n, D)`; new ones are remembered."""
        wanted = list(texts)
        new = dict.fromkeys(text for text in wanted if text not in self._rows)
        for role in dict.fromkeys(role for role, _ in new):
            self.remember([text for own, text in new if own == role], role)
        return self._vectors[torch.tensor([self._rows[text] for text in wanted], dtype=torch.long, device=self.device)]

    def features(self, texts: Iterable[str], role: Role) -> dict[str, Tensor]:
        """Return the frozen encoder's vectors of texts, for the adapter or past it."""
        vectors = self.vectors((role, text) for text in texts)
        adapts, none = role in self.roles, vectors[:0]
        return {ADAPTED: vectors if adapts else none, KEPT: none if adapts else vectors}

    def encode(
        self, texts: Iterable[str], role: Role, output: Output = "sentence", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Return vectors `(len(texts), D)` with the present adapter; see `Encoder.encode`.

        Vectors of the frozen encoder that are remembered are not computed again, and no others are remembered.
        """
        require_vectors(output)
        texts = list_texts(texts)
        distinct = list(dict.fromkeys(texts))
        new = [text for text in distinct if (role, text) not in self._rows]
        place = {text: len(self._vectors) + i for i, text in enumerate(new)}
        rows = [self._rows.get((role, text), place.get(text, 0)) for text in texts]
        known = self._vectors
        if new:
            known = torch.cat([known, torch.from_numpy(self._base_vectors(new, role, batch_size)).to(known)])
        vectors = known[torch.tensor(rows, dtype=torch.long, device=known.device)]
        if role in self.roles:
            with torch.no_grad(), torch.autocast(vectors.device.type, enabled=False):
                vectors = self.adapter(vectors)
        return vectors.float().cpu().numpy()

    def _base_vectors(self, texts: Sequence[str], role: Role, batch_size: int = 64) -> NDArray[np.float32]:
        self.base.on_progress = self.on_progress
        return self.base.encode(texts, role, batch_size=batch_size)


def encoder_of(model: SentenceTransformer, name: str = "model", max_length: MaxLength | None = None) -> Encoder:
    """Return an encoder of a model, with its adapter if the model was saved with one; errors as `Encoder`."""
    router = model[-1]
    if not isinstance(router, Router):
        return Encoder(model, name, max_length)
    routes = {route: list(modules) for route, modules in router.sub_modules.items()}
    kinds = {route: [type(module) for module in modules] for route, modules in routes.items()}
    if kinds != {QUERY: [Dense, Normalize], DOCUMENT: []} or routes[QUERY][0].bias:
        raise EncoderError(f"{name}: a Router is supported only as a linear map of queries behind all other modules")
    base = copy.copy(model)
    base._modules = dict(list(model._modules.items())[:-1])
    weight = routes[QUERY][0].linear.weight.detach()
    adapter = MatrixAdapter(len(weight)).to(weight)
    with torch.no_grad():
        adapter.delta.copy_(weight - torch.eye(len(weight)).to(weight))
    return AdaptedEncoder(Encoder(base, name, max_length), adapter, pairs=router.default_route == QUERY)


def require_plain(encoder: Encoder, what: str) -> None:
    """Raise `EncoderError` where an encoder has an adapter, which `what` would lose."""
    if isinstance(encoder, AdaptedEncoder):
        raise EncoderError(f"encoder '{encoder.name}' has a query adapter, which {what} does not support")
