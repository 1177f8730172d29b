"""What the server answers: the interface of embeddings, the search, and what there is."""

import asyncio
import base64
import contextlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from metasearch.config.languages import normalise_tag
from metasearch.errors import ConfigError, MetasearchError, nearest
from metasearch.retrieval.index.hit import Hit
from metasearch.retrieval.search.searcher import Searcher
from metasearch.retrieval.server import body, requests
from metasearch.retrieval.server.batches import Batches
from metasearch.retrieval.server.errors import RequestError, answer
from metasearch.retrieval.server.inference_worker import Embedding, Result, Search, worker
from metasearch.retrieval.server.limits import Limits
from metasearch.retrieval.server.metrics import Metrics


class Service:
    """Answers requests of one index and its encoder.

    Args:
        searcher: what is searched.
        limits: of requests.
        name: of the model; by default the encoder's, without the path of a local folder.
    """

    def __init__(self, searcher: Searcher, limits: Limits, name: str | None = None) -> None:
        self.searcher = searcher
        self.limits = limits
        self.name = name or _without_path(searcher.encoder.name)
        self.languages = dict(searcher.languages)
        self.metrics = Metrics()
        self.batches = Batches(worker(searcher), limits, self.metrics.batches.observe)
        self.metrics.waiting.set_function(lambda: self.batches.waiting)

    def warm_up(self) -> None:
        """Encode and search once, so that what every search needs is there; `hybrid` and `expand` wait until asked."""
        do = worker(self.searcher)
        do(Embedding("candidate"), ["warm"])
        do(Search(1, frozenset(), hybrid=False, expand=False, balance=False), ["warm"])

    async def embeddings(self, request: Request) -> Response:
        """Answer `POST /v1/embeddings`."""
        wanted = await body.read(request, requests.EmbeddingsRequest, self.limits)
        texts = requests.inputs(wanted.input)
        requests.require_texts("input", texts, self.limits)
        self._require_model(wanted.model, wanted.dimensions)
        role = requests.ROLES[wanted.input_type]
        results = await self._answered(request, Embedding(role), texts)
        cut, limit = _cut(results), self.searcher.encoder.limit(role)
        requests.require_whole(cut, "input", limit, wanted.truncate)
        vectors = [_written(result.vector, wanted.encoding_format) for result in results]
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        tokens = sum(result.tokens for result in results)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        facts = {"object": "list", "data": data, "model": self.name, "usage": usage}
        return answer({**facts, "truncated": cut, "max_tokens": limit})

    async def search(self, request: Request) -> Response:
        """Answer `POST /search`."""
        wanted = await body.read(request, requests.SearchRequest, self.limits)
        queries = wanted.texts()
        requests.require_texts("queries", queries, self.limits)
        top = wanted.most(self.limits)
        languages = frozenset(map(normalise_tag, wanted.languages))
        for tag in sorted(languages):
            if tag not in self.languages:
                hint = nearest(tag, self.languages)
                raise RequestError(422, "unknown_language", f"languages: no passage is in '{tag}'.{hint}")
        if wanted.expand:
            self._require_expandable()
        work = Search(top, languages, wanted.hybrid, wanted.expand, wanted.balance)
        results = await self._answered(request, work, queries)
        cut, limit = _cut(results), self.searcher.encoder.limit("question")
        requests.require_whole(cut, "queries", limit, wanted.truncate)
        found = [
            {"query": query, "hits": [_tree(hit) for hit in result.hits]}
            for query, result in zip(queries, results, strict=True)
        ]
        return answer({"results": found, "model": self.name, "truncated": cut, "max_tokens": limit})

    def _require_expandable(self) -> None:
        try:
            self.searcher.require_expandable()
        except ConfigError as error:
            raise RequestError(422, "cannot_expand", f"expand: {error}") from None

    async def models(self, request: Request) -> Response:
        """Answer `GET /v1/models`."""
        return answer({"object": "list", "data": [self._model()]})

    async def model(self, request: Request) -> Response:
        """Answer `GET /v1/models/NAME`."""
        self._require_model(request.path_params["name"], None)
        return answer(self._model())

    async def about(self, request: Request) -> Response:
        """Answer `GET /index`: what there is to search, and with which model."""
        facts = {"model": self.name, "dimensions": self.searcher.encoder.dimension(), "top": self.limits.hits}
        return answer({**facts, "passages": sum(self.languages.values()), "languages": self.languages})

    async def _answered(self, request: Request, work: Hashable, texts: Sequence[str]) -> list[Result]:
        """Return what comes of the texts, while there is a client that waits for it."""
        doing = asyncio.ensure_future(self.batches.ask(work, texts))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({doing, gone}, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise _given_up(gone.done(), self.limits.timeout)
            results = await doing
        except ConfigError as error:
            raise RequestError(422, "invalid_body", str(error)) from None
        except MetasearchError as error:
            raise RequestError(500, type(error).__name__, str(error)) from None
        finally:
            doing.cancel()
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
        kind = "embedding" if isinstance(work, Embedding) else "search"
        self.metrics.count(kind, len(texts), sum(result.cut for result in results))
        return results

    def _require_model(self, name: str | None, dimensions: int | None) -> None:
        if name not in (None, self.name):
            raise RequestError(404, "model_not_found", f"there is no model '{name}'; this server has '{self.name}'")
        width = self.searcher.encoder.dimension()
        if dimensions not in (None, width):
            raise RequestError(
                422, "invalid_dimensions", f"dimensions: {dimensions}; vectors of '{self.name}' have {width}"
            )

    def _model(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": 0, "owned_by": "metasearch"}


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _given_up(gone: bool, timeout: float) -> RequestError:
    if gone:
        return RequestError(499, "client_gone", "the client has closed the connection")
    return RequestError(503, "timeout", f"there was no answer within {timeout:g} s (--timeout)", {"retry-after": "1"})


def _cut(results: Sequence[Result]) -> list[int]:
    return [i for i, result in enumerate(results) if result.cut]


def _written(vector: NDArray[np.float32] | None, kind: str) -> list[float] | str:
    """Return a vector `(D,)` as numbers, or as base64 of little-endian float32."""
    assert vector is not None
    if kind == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers


def _tree(hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    where = {"file": passage.file, "line": passage.line, "language": passage.language}
    return {"score": round(float(hit.score), 6), **where, "text": passage.text}


def _without_path(name: str) -> str:
    """Return the name of an encoder; of a local folder its last part, or the run whose `model` it is."""
    path = Path(name)
    if not path.is_absolute() and not path.is_dir():
        return name
    path = path.resolve()
    return (path.name == "model" and path.parent.name) or path.name
