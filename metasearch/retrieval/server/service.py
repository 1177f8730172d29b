"""The endpoints that use the index and its encoder."""

import asyncio
import base64
import logging
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from metasearch.config.index import RERANK_TOP, RankingSettings, SearchSettings
from metasearch.config.languages import normalise_tag
from metasearch.config.recipe import Role
from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError, MetasearchError, nearest
from metasearch.retrieval.index.base import Hit
from metasearch.retrieval.search.searcher import Searcher
from metasearch.retrieval.server import schemas
from metasearch.retrieval.server.batching import Batcher
from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.metrics import Metrics
from metasearch.retrieval.server.schemas import EmbeddingsRequest, Limits, SearchRequest

log = logging.getLogger(__name__)

_DEFAULT_TOP = 10
"""Hits of a query that does not ask for a number, unless `--max-hits` is less."""


@dataclass(frozen=True)
class EmbeddingWork:
    """Encode texts in a role, with the projection of a neutral index or without it."""

    role: Role
    projected: bool = False


@dataclass(frozen=True)
class Result:
    """The result of one text.

    Attributes:
        tokens: that the encoder read.
        truncated: whether the text was longer.
        vector: `(D,)`, of an embedding.
        hits: of a search.
    """

    tokens: int
    truncated: bool
    vector: NDArray[np.float32] | None = None
    hits: Sequence[Hit] = ()


class Service:
    """Answers requests with one index and its encoder."""

    def __init__(
        self, searcher: Searcher, limits: Limits, name: str | None = None, rerank_top: int = RERANK_TOP
    ) -> None:
        self.searcher = searcher
        self.limits = limits
        self.rerank_top = rerank_top
        self.name = name or _name_without_path(searcher.encoder.name)
        self.languages = dict(searcher.languages)
        self.metrics = Metrics()
        self.batcher = Batcher(self._work, limits, self.metrics.batches.observe)
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)
        self._reading: Future[Any] | None = None

    @property
    def busy(self) -> bool:
        """Whether a thread still encodes, searches or reads an index."""
        return self.batcher.busy or (self._reading is not None and not self._reading.done())

    def warm_up(self) -> None:
        """Encode and search once, to load everything that plain requests need."""
        self._work(EmbeddingWork("candidate"), ["warm"])
        self._work(SearchSettings(top=1, rerank=1 if self.searcher.reranker else 0), ["warm"])

    async def reload(self) -> None:
        """Look for a changed index again and again, and serve it; until cancelled."""
        thread = ThreadPoolExecutor(1, "reload")
        problem = ""
        try:
            while True:
                await asyncio.sleep(self.limits.reload)
                try:
                    self._reading = thread.submit(self.searcher.reopen)
                    if found := await asyncio.wrap_future(self._reading):
                        self.searcher, self.languages = found, dict(found.languages)
                    problem = ""
                except MetasearchError as error:
                    if str(error) != problem:
                        log.warning("still serving the old index: %s", error)
                    problem = str(error)
        finally:
            thread.shutdown(wait=False)

    async def embeddings(self, request: Request, body: EmbeddingsRequest) -> schemas.EmbeddingsAnswer:
        """Embeddings of texts, as in OpenAI's interface."""
        self._require_texts("input", body.input)
        self._require_model(body.model)
        self._require_dimensions(body.dimensions)
        role = schemas.ROLES[body.input_type or "document"]
        work = EmbeddingWork(role, body.input_type in schemas.PROJECTED)
        results = await self._ask(request, work, role, body.input)
        truncated = self._require_whole("input", results, role, body.truncate)
        vectors = [_encode_vector(result.vector, body.encoding_format) for result in results]
        tokens = sum(result.tokens for result in results)
        return schemas.EmbeddingsAnswer(
            data=[schemas.Embedding(index=i, embedding=vector) for i, vector in enumerate(vectors)],
            model=self.name,
            usage=schemas.Usage(prompt_tokens=tokens, total_tokens=tokens),
            truncated=truncated,
            max_tokens=self.searcher.encoder.limit(role),
        )

    async def search(self, request: Request, body: SearchRequest) -> schemas.SearchAnswer:
        """Passages for one query or several."""
        self._require_texts("queries", body.texts)
        top = min(_DEFAULT_TOP, self.limits.hits) if body.top is None else body.top
        if top > self.limits.hits:
            message = f"top: {top}; choose a number from 1 to {self.limits.hits} (--max-hits)"
            raise RequestError(422, "invalid_top", message, "top")
        languages = sorted(set(map(normalise_tag, body.languages)))
        for tag in (tag for tag in languages if tag not in self.languages):
            message = f"languages: no passage is in '{tag}'.{nearest(tag, self.languages)}"
            raise RequestError(422, "unknown_language", message, "languages")
        if body.expand:
            try:
                self.searcher.require_expandable()
            except ConfigError as error:
                raise RequestError(422, "cannot_expand", f"expand: {error}", "expand") from None
        rerank = self._count_reranked(body.rerank, top)
        ranking = {name: getattr(body, name) for name in RankingSettings.model_fields}
        work = SearchSettings(top=top, languages=tuple(languages), rerank=rerank, where=body.where, **ranking)
        results = await self._ask(request, work, "question", body.texts)
        truncated = self._require_whole("queries", results, "question", body.truncate)
        return schemas.SearchAnswer(
            results=[
                schemas.QueryHits(query=query, hits=[_describe_hit(hit) for hit in result.hits])
                for query, result in zip(body.texts, results, strict=True)
            ],
            model=self.name,
            truncated=truncated,
            max_tokens=self.searcher.encoder.limit("question"),
        )

    def _count_reranked(self, asked: bool | int, top: int) -> int:
        """Return how many passages of each query are reranked; `RequestError` if that is impossible."""
        if asked is False:
            return 0
        count = self.rerank_top if asked is True else asked
        if count > self.rerank_top:
            message = f"rerank: {count}; choose a number from 1 to {self.rerank_top} (--rerank-top)"
            raise RequestError(422, "invalid_rerank", message, "rerank")
        try:
            self.searcher.require_rerankable(top, count)
        except ConfigError as error:
            raise RequestError(422, "cannot_rerank", f"rerank: {error}", "rerank") from None
        return count

    async def models(self) -> schemas.ModelList:
        """The model that this server has."""
        return schemas.ModelList(data=[schemas.Model(id=self.name)])

    async def model(self, name: str) -> schemas.Model:
        """The model, by its name."""
        self._require_model(name)
        return schemas.Model(id=self.name)

    async def index(self) -> schemas.IndexFacts:
        """Facts about the index: passages by language, model and dimensions."""
        return schemas.IndexFacts(
            model=self.name,
            dimensions=self.searcher.encoder.dimension(),
            top=self.limits.hits,
            passages=sum(self.languages.values()),
            languages=self.languages,
        )

    def _work(self, work: EmbeddingWork | SearchSettings, texts: list[str]) -> list[Result]:
        """Return the result of each text; runs in the encoder's thread."""
        searcher = self.searcher
        encoder = searcher.encoder
        role: Role = work.role if isinstance(work, EmbeddingWork) else "question"
        try:
            truncated = encoder.is_truncated(texts, role).tolist()
            facts = zip(encoder.lengths(texts, role).tolist(), truncated, strict=True)
            if isinstance(work, EmbeddingWork):
                vectors = (searcher.projected if work.projected else encoder).encode(texts, role)
                return [Result(*fact, vector=vector) for fact, vector in zip(facts, vectors, strict=True)]
            found = searcher.search(texts, **work.model_dump())
            return [Result(*fact, hits=hits) for fact, hits in zip(facts, found, strict=True)]
        finally:
            encoder.forget()

    async def _ask(self, request: Request, work: Hashable, role: Role, texts: Sequence[str]) -> list[Result]:
        """Return the results of texts, while the client waits for them."""
        future = self.batcher.submit(work, texts, self.searcher.encoder.limit(role))
        gone = asyncio.create_task(_wait_until_gone(request))
        gone.add_done_callback(lambda _: future.cancel())
        try:
            async with asyncio.timeout(self.limits.timeout):
                results = await future
        except TimeoutError:
            message = f"there was no answer within {self.limits.timeout:g} s (--timeout)"
            raise RequestError(503, "timeout", message, headers={"retry-after": "1"}) from None
        except asyncio.CancelledError:
            if not gone.done() or gone.cancelled():  # the server stops
                raise
            raise RequestError(499, "client_gone", "the client has closed the connection") from None
        except ConfigError as error:
            raise RequestError(422, "invalid_body", str(error)) from None
        except MetasearchError as error:
            raise RequestError(500, type(error).__name__, str(error)) from None
        finally:
            gone.cancel()
        kind = "embedding" if isinstance(work, EmbeddingWork) else "search"
        self.metrics.count_texts(kind, len(texts), sum(result.truncated for result in results))
        return results

    def _require_texts(self, name: str, texts: Sequence[str]) -> None:
        """Raise `RequestError` if there are no texts or too many, or one is blank."""
        if not texts:
            raise RequestError(422, "no_input", f"{name}: the list is empty", name)
        if len(texts) > self.limits.inputs:
            message = f"{name}: {len(texts)} texts; a request may have {self.limits.inputs} (--max-inputs)"
            raise RequestError(422, "too_many_inputs", message, name)
        for i, text in enumerate(texts):
            if blank(text):
                raise RequestError(422, "blank_input", f"{name}[{i}]: the text is blank", f"{name}[{i}]")

    def _require_whole(self, name: str, results: Sequence[Result], role: Role, truncate: bool) -> list[int]:
        """Return which texts were truncated; `RequestError` if the request forbids that."""
        truncated = [i for i, result in enumerate(results) if result.truncated]
        if truncated and not truncate:
            key = f"{name}[{truncated[0]}]"
            limit = self.searcher.encoder.limit(role)
            message = f"{key}: the text has more than {limit} tokens, the encoder's maximum; shorten it, or drop"
            raise RequestError(422, "input_too_long", f'{message} "truncate": false', key)
        return truncated

    def _require_model(self, name: str | None) -> None:
        if name not in (None, self.name):
            message = f"there is no model '{name}'; this server has '{self.name}'"
            raise RequestError(404, "model_not_found", message, "model")

    def _require_dimensions(self, dimensions: int | None) -> None:
        width = self.searcher.encoder.dimension()
        if dimensions not in (None, width):
            message = f"dimensions: {dimensions}; embeddings of '{self.name}' have {width}"
            raise RequestError(422, "invalid_dimensions", message, "dimensions")


async def _wait_until_gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _encode_vector(vector: NDArray[np.float32] | None, form: str) -> list[float] | str:
    """Return a vector `(D,)` as numbers, or as base64 of little-endian float32."""
    assert vector is not None
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers


def _describe_hit(hit: Hit) -> schemas.FoundPassage:
    passage = hit.passage
    return schemas.FoundPassage(
        score=round(float(hit.score), 6),
        file=passage.file,
        line=passage.line,
        language=passage.language,
        text=passage.text,
        fields=dict(passage.fields),
    )


def _name_without_path(name: str) -> str:
    """Return the name of an encoder; of a local folder its last part, or the run that its `model` belongs to."""
    path = Path(name)
    if not path.is_absolute() and not path.is_dir():
        return name
    path = path.resolve()
    return (path.name == "model" and path.parent.name) or path.name
