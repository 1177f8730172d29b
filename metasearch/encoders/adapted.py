"""A frozen encoder with a trainable adapter of its query vectors; document vectors do not change.

Each text is encoded once by the frozen encoder. What is trained sees vectors of texts, not tokens, so a step takes
milliseconds. The saved model is the encoder with one module more: a `Router` of sentence-transformers, whose route
`query` is a linear map and a normalisation, and whose route `document` changes nothing.

Notation used for tensor shapes: n texts, D dimensions.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn

from metasearch.config.precision import EncodingPrecision
from metasearch.config.roles import MaxLength, Role
from metasearch.data.formats.given import list_texts
from metasearch.encoders.adapter import MatrixAdapter, PlanAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import EncoderError

QUERY, DOCUMENT = "query", "document"
"""Routes of the saved model."""
ADAPTED, COORDINATES, KEPT = "adapted", "coordinates", "kept"
"""Features of an adapted encoder: vectors for the adapter, maybe with coordinates, and vectors that stay."""


class AdaptedEmbedder(nn.Module):
    """The adapter as the trainable network of an encoder: vectors of the frozen encoder in, unit vectors out."""

    def __init__(self, adapter: MatrixAdapter | PlanAdapter) -> None:
        super().__init__()
        self.adapter = adapter

    def forward(self, features: Mapping[str, Tensor], output: Output = "sentence") -> Tensor:
        """Return unit vectors `(n, D)`: the adapted ones, and behind them those that stay."""
        require_vectors(output)
        # In bfloat16 a vector would lose most of its digits.
        with torch.autocast(features[KEPT].device.type, enabled=False):
            adapted = self.adapter(features[ADAPTED], features.get(COORDINATES))
            return torch.cat([adapted, features[KEPT]])


def require_vectors(output: Output) -> None:
    """Raise `EncoderError` for an output that an adapter does not have."""
    if output != "sentence":
        raise EncoderError(f"an adapter reads unit vectors of texts: its only output is sentence, not {output}")


class AdaptedEncoder(Encoder):
    """An encoder whose weights are frozen, and an adapter, which alone is trained.

    Args:
        base: the encoder; it does not change.
        adapter: maps vectors of queries, and with `pairs` also those of texts without a role, as in scored pairs.
        pairs: whether texts without a role are adapted; documents never are.
        vectors: gives the frozen encoder's vectors in its place, such as cached ones.

    Raises:
        EncoderError: the adapter is of another width.
    """

    def __init__(
        self,
        base: Encoder,
        adapter: MatrixAdapter | PlanAdapter,
        pairs: bool = False,
        vectors: TextEncoder | None = None,
    ) -> None:
        if adapter.dimension != base.dimension():
            raise EncoderError(
                f"{base.name} has {base.dimension()} dimensions, and its adapter {adapter.dimension}: they do not fit"
            )
        self.base, self.vectors, self.model = base, vectors or base, base.model
        self.adapter: MatrixAdapter | PlanAdapter = adapter.to(next(base.embedder.parameters()))
        self.embedder = AdaptedEmbedder(adapter).eval()  # type: ignore[assignment]
        self._begin(base.name, base.max_length, base.reader, self.embedder, base.model)
        self._pools_prompts = base._pools_prompts
        self.origin, self.seeded, self.precision = base.origin, base.seeded, base.precision
        self._like = next(adapter.parameters())
        self.roles: frozenset[Role] = frozenset({"question", "text"} if pairs else {"question"})

    @property
    def neutral(self) -> bool:
        """Whether documents go through a language-neutral projection."""
        return self.base.neutral or self.centred

    @property
    def centred(self) -> bool:
        """Whether queries and documents go through the centres of an index."""
        return isinstance(self.adapter, PlanAdapter)

    @property
    def maps_queries(self) -> bool:
        """Whether the adapter is another map than the identity."""
        matrix = self.adapter.matrix()
        return not torch.equal(matrix, torch.eye(len(matrix)).to(matrix))

    @property
    def on_progress(self) -> Callable[[int, int], None] | None:  # type: ignore[override]
        """The listener of the frozen encoder, which does all the work."""
        return self.base.on_progress

    @on_progress.setter
    def on_progress(self, hear: Callable[[int, int], None] | None) -> None:
        self.base.on_progress = hear

    @property
    def parameter_count(self) -> int:
        """Number of weights, with the adapter's."""
        return self.base.parameter_count + super().parameter_count

    @property
    def size(self) -> int:
        """Bytes of its weights, with the adapter's."""
        return self.base.size + super().size

    @property
    def whole(self) -> SentenceTransformer:
        """The frozen encoder and the present adapter as one model, for saving."""
        matrix = self.adapter.matrix().detach().clone()
        routes: dict[str, list[nn.Module]] = {QUERY: [_dense(matrix), Normalize()], DOCUMENT: []}
        if isinstance(own := self.adapter, PlanAdapter):
            weight, centres = own.weight.detach(), {QUERY: own.query_centre.detach(), DOCUMENT: own.centre.detach()}
            for route, centre in centres.items():
                routes[route] = [_dense(weight, -weight @ centre), Normalize(), *routes[route]]
        model = copy.copy(self.model)
        model._modules = dict(model._modules)  # which a shallow copy shares
        model.append(Router(routes, default_route=QUERY if "text" in self.roles else DOCUMENT).eval())
        return model

    def choose_precision(self, asked: EncodingPrecision, tried: bool = False) -> "AdaptedEncoder":
        """Let the frozen encoder compute in another precision; returns itself."""
        self.base.choose_precision(asked, tried)
        self.precision = self.base.precision
        return self

    def to(self, device: str | torch.device) -> "AdaptedEncoder":
        """Move the weights; returns itself."""
        self.base.to(device)
        super().to(device)
        return self

    def frozen(self, texts: Iterable[str], role: Role) -> Tensor:
        """Return the frozen encoder's vectors of texts, `(n, D)`."""
        return torch.from_numpy(self.vectors.encode(list(texts), role)).to(self._like)

    def features(self, texts: Iterable[str], role: Role) -> dict[str, Tensor]:
        """Return the frozen encoder's vectors of texts, for the adapter or past it."""
        vectors = self.frozen(texts, role)
        adapts, none = role in self.roles, vectors[:0]
        return {ADAPTED: vectors if adapts else none, KEPT: none if adapts else vectors}

    def encode(
        self, texts: Iterable[str], role: Role, output: Output = "sentence", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Return vectors `(len(texts), D)` with the present adapter; see `Encoder.encode`."""
        require_vectors(output)
        vectors = (
            self.base.encode(texts, role, batch_size=batch_size)
            if self.vectors is self.base
            else self.vectors.encode(list_texts(texts), role)
        )
        if role in self.roles:
            through: Callable[[Tensor], Tensor] = self.adapter
        elif isinstance(self.adapter, PlanAdapter):
            through = self.adapter.documents
        else:
            return vectors
        with torch.no_grad(), torch.autocast(self.device.type, enabled=False):
            adapted = through(torch.from_numpy(vectors).to(self._like))
        return adapted.float().cpu().numpy()


def encoder_of(model: SentenceTransformer, name: str = "model", max_length: MaxLength | None = None) -> Encoder:
    """Return an encoder of a model, with its adapter if the model was saved with one; errors as `Encoder`."""
    router = model[-1]
    if not isinstance(router, Router):
        return Encoder(model, name, max_length)
    routes = {route: list(modules) for route, modules in router.sub_modules.items()}
    kinds = {route: [type(module) for module in modules] for route, modules in routes.items()}
    plan = kinds == {QUERY: 2 * [Dense, Normalize], DOCUMENT: [Dense, Normalize]}
    if not plan and (kinds != {QUERY: [Dense, Normalize], DOCUMENT: []} or routes[QUERY][0].bias):
        raise EncoderError(f"{name}: a Router is supported only as a linear map of queries behind all other modules")
    base = copy.copy(model)
    base._modules = dict(list(model._modules.items())[:-1])
    if plan:
        return AdaptedEncoder(Encoder(base, name, max_length), _plan_adapter(routes))
    adapter = MatrixAdapter.of(routes[QUERY][0].linear.weight.detach())
    return AdaptedEncoder(Encoder(base, name, max_length), adapter, pairs=router.default_route == QUERY)


def _dense(weight: Tensor, bias: Tensor | None = None) -> nn.Module:
    size = len(weight)
    found: nn.Module = Dense(size, size, bias is not None, nn.Identity(), weight, bias).to(weight)
    return found


def _plan_adapter(routes: Mapping[str, list[nn.Module]]) -> PlanAdapter:
    """Return the maps of an index from the routes of a saved model.

    W is a projection, so that its bias −W c stands for a centre c by itself: W (−(−W c)) = W c.
    """
    first, last, document = (cast(Dense, each).linear for each in (*routes[QUERY][::2], routes[DOCUMENT][0]))
    weight, centre, query_centre = first.weight.detach(), -document.bias.detach(), -first.bias.detach()
    return PlanAdapter(weight, centre, query_centre, last.weight.detach())
