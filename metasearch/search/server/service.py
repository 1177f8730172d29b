"""The endpoints that use the index and its encoder."""

import asyncio
import base64
import contextlib
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from metasearch.config.rerank import RerankSettings
from metasearch.config.roles import Role
from metasearch.data.formats.blank import blank
from metasearch.errors import ConfigError, EncoderError, MetasearchError
from metasearch.search.index.base import Hit, SearchError
from metasearch.search.query.searcher import QUERY, Searcher
from metasearch.search.server import schemas
from metasearch.search.server.batching import Batcher
from metasearch.search.server.errors import RequestError
from metasearch.search.server.metrics import Metrics
from metasearch.search.server.settings import Limits
from metasearch.search.settings import RankingSettings, SearchSettings

log = logging.getLogger(__name__)

_DEFAULT_TOP_K = 10
"""Hits of a query that does not ask for a number, unless `--max-hits` is less."""


class EmbeddingWork(NamedTuple):
    """Encode texts in a role, with the projection of a neutral index or without it."""

    role: Role
    projected: bool = False


class Result(NamedTuple):
    """The vector `(D,)` or the hits of a text, the tokens that the encoder read, and whether the text was longer."""

    value: Any
    tokens: int
    truncated: bool


class Service:
    """Answers requests with one index and its encoder."""

    def __init__(
        self, searcher: Searcher, limits: Limits, name: str | None = None, rerank_top: int = RerankSettings().top
    ) -> None:
        self.searcher = searcher
        self.limits = limits
        self.rerank_top = rerank_top
        self.name = name or _name_without_path(searcher.encoder.name)
        self.metrics = Metrics()
        self.batcher = Batcher(self._work, limits, self.metrics.batches.observe)
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)
        self.metrics.passages.set_function(lambda: self.passages)
        self._reading: Future[Any] | None = None
        self._broken = False
        """Whether the encoder failed, and encoded nothing since."""

    @property
    def passages(self) -> int:
        """Passages of the served index; one that several places have is counted once."""
        return sum(self.searcher.languages.values())

    @property
    def busy(self) -> bool:
        """Whether a thread still encodes, searches or reads an index."""
        return self.batcher.busy or (self._reading is not None and not self._reading.done())

    def warm_up(self) -> None:
        """Encode and search once, to load everything that requests need."""
        _ = self.searcher.encoder.reader.fast_tokenizer  # for long texts; its file may be replaced while this serves
        self._work(EmbeddingWork("candidate"), ["warm"])
        self._work(SearchSettings(top_k=1, rerank=1 if self.searcher.reranker else 0), ["warm"])

    async def can_encode(self) -> bool:
        """Return whether texts can be encoded; after an error, one is tried."""
        if self._broken:
            with contextlib.suppress(MetasearchError, RequestError):
                await self.batcher.submit(EmbeddingWork(QUERY), ["warm"])
        return not self._broken

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
                        self.searcher = found
                    problem = ""
                except MetasearchError as error:
                    if str(error) != problem:
                        log.warning("still serving the old index: %s", error)
                    problem = str(error)
                self.metrics.outdated.set(bool(problem))
        finally:
            thread.shutdown(wait=False)

    async def embeddings(self, request: Request, body: schemas.EmbeddingsRequest) -> schemas.EmbeddingsAnswer:
        """Embeddings of texts, as in OpenAI's interface."""
        self._require_model(body.model)
        width = self.searcher.encoder.dimension()
        if body.dimensions not in (None, width):
            message = f"dimensions: {body.dimensions}; embeddings of '{self.name}' have {width}"
            raise RequestError(422, "invalid_dimensions", message, "dimensions")
        kind = body.input_type or "document"
        work = EmbeddingWork(schemas.ROLES[kind], kind in schemas.PROJECTED)
        results, truncated, limit = await self._ask(request, work, "input", body.input, body.truncate)
        tokens = sum(result.tokens for result in results)
        return schemas.EmbeddingsAnswer(
            data=[
                schemas.Embedding(index=i, embedding=_encode_vector(result.value, body.encoding_format))
                for i, result in enumerate(results)
            ],
            model=self.name,
            usage={"prompt_tokens": tokens, "total_tokens": tokens},
            truncated=truncated,
            max_tokens=limit,
        )

    async def search(self, request: Request, body: schemas.SearchRequest) -> schemas.SearchAnswer:
        """Passages for one query or several."""
        top_k = min(_DEFAULT_TOP_K, self.limits.hits) if body.top_k is None else body.top_k
        rerank = self.rerank_top if body.rerank is True else int(body.rerank)
        for name, value, most, flag in (
            ("top_k", top_k, self.limits.hits, "--max-hits"),
            ("rerank", rerank, self.rerank_top, "--rerank-top"),
        ):
            if value > most:
                message = f"{name}: {value}; choose a number from 1 to {most} ({flag})"
                raise RequestError(422, f"invalid_{name}", message, name)
        asked = {name: getattr(body, name) for name in ("languages", "prefer", "where", *RankingSettings.model_fields)}
        work = SearchSettings(**{**asked, "top_k": top_k, "rerank": rerank})
        results, truncated, limit = await self._ask(request, work, "queries", body.texts, body.truncate)
        return schemas.SearchAnswer(
            results=[
                schemas.QueryHits(query=query, hits=[_describe_hit(hit) for hit in result.value])
                for query, result in zip(body.texts, results, strict=True)
            ],
            model=self.name,
            truncated=truncated,
            max_tokens=limit,
        )

    async def models(self) -> schemas.ModelList:
        """The model that this server has, as OpenAI's interface describes it."""
        return schemas.ModelList(data=[schemas.Model(id=self.name)])

    async def model(self, name: str) -> schemas.Model:
        """The model, by its name."""
        self._require_model(name)
        return schemas.Model(id=name)

    async def index(self) -> schemas.IndexFacts:
        """Facts about the index: passages by language, model and dimensions."""
        return schemas.IndexFacts(
            model=self.name,
            dimensions=self.searcher.encoder.dimension(),
            max_hits=self.limits.hits,
            passages=self.passages,
            languages=dict(self.searcher.languages),
            ranking=self.searcher.ranking.model_dump(),
            unknown_languages=dict(self.searcher.store.unknown),
        )

    def _work(self, work: EmbeddingWork | SearchSettings, texts: list[str]) -> list[Result]:
        """Return the result of each text; runs in the encoder's thread."""
        searcher = self.searcher
        encoder, role = searcher.encoder, _role(work)
        values: Iterable[Any]
        try:
            truncated, lengths = encoder.is_truncated(texts, role).tolist(), encoder.lengths(texts, role).tolist()
            if isinstance(work, EmbeddingWork):
                embed = searcher.encode_queries if role == QUERY else searcher.encode_documents
                values = embed(texts) if work.projected else encoder.encode(texts, role)
            else:
                values = searcher.answer(texts, work)
            found = list(map(Result, values, lengths, truncated))
            self._broken = False
            return found
        except EncoderError:
            self._broken = True
            raise
        finally:
            encoder.forget()

    async def _ask(
        self, request: Request, work: EmbeddingWork | SearchSettings, name: str, texts: Sequence[str], truncate: bool
    ) -> tuple[list[Result], list[int], int]:
        """Return the results of texts, which of them were truncated, and the encoder's maximum.

        `RequestError` if the texts are too many, too long or blank, nobody waits for them, or there is no result.
        """
        self._require_texts(name, texts)
        limit = self.searcher.encoder.limit(_role(work))
        results = await self._wait(request, self.batcher.submit(work, texts))
        truncated = [i for i, result in enumerate(results) if result.truncated]
        kind = "embedding" if isinstance(work, EmbeddingWork) else "search"
        self.metrics.texts.labels(kind).inc(len(texts))
        self.metrics.truncated.labels(kind).inc(len(truncated))
        if truncated and not truncate:
            key = f"{name}[{truncated[0]}]"
            message = f"{key}: the text has more than {limit} tokens, the encoder's maximum; shorten it, or drop"
            raise RequestError(422, "input_too_long", f'{message} "truncate": false', key)
        return results, truncated, limit

    async def _wait(self, request: Request, future: asyncio.Future[list[Result]]) -> list[Result]:
        gone = asyncio.create_task(_wait_until_gone(request))
        gone.add_done_callback(lambda _: future.cancel())
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await future
        except TimeoutError:
            message = f"there was no answer within {self.limits.timeout:g} s (--timeout)"
            raise RequestError(503, "timeout", message, headers={"retry-after": "1"}) from None
        except asyncio.CancelledError:
            if not gone.done() or gone.cancelled():  # the server stops
                raise
            raise RequestError(499, "client_gone", "the client has closed the connection") from None
        except SearchError as error:
            raise RequestError(422, error.code, f"{error.param}: {error}", error.param) from None
        except ConfigError as error:
            raise RequestError(422, "invalid_body", str(error)) from None
        except MetasearchError as error:
            log.error("%s: %s", request.url.path, error)
            raise RequestError(500, type(error).__name__, str(error)) from None
        finally:
            gone.cancel()

    def _require_texts(self, name: str, texts: Sequence[str]) -> None:
        if not texts:
            raise RequestError(422, "no_input", f"{name}: the list is empty", name)
        if len(texts) > self.limits.inputs:
            message = f"{name}: {len(texts)} texts; a request may have {self.limits.inputs} (--max-inputs)"
            raise RequestError(422, "too_many_inputs", message, name)
        for i, text in enumerate(texts):
            if blank(text):
                raise RequestError(422, "blank_input", f"{name}[{i}]: the text is blank", f"{name}[{i}]")

    def _require_model(self, name: str | None) -> None:
        if name not in (None, self.name):
            message = f"there is no model '{name}'; this server has '{self.name}'"
            raise RequestError(404, "model_not_found", message, "model")


def _role(work: EmbeddingWork | SearchSettings) -> Role:
    return work.role if isinstance(work, EmbeddingWork) else QUERY


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _encode_vector(vector: NDArray[np.float32], form: str) -> list[float] | str:
    """Return a vector `(D,)` as numbers, or as base64 of little-endian float32."""
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers


def _describe_hit(hit: Hit) -> schemas.FoundPassage:
    return schemas.FoundPassage(
        **asdict(hit.passage),
        score=round(float(hit.score), 6),
        languages=list(hit.languages),
        url=hit.url,
        translations=[schemas.FoundTranslation(**asdict(each.passage), url=each.url) for each in hit.translations],
    )


def _name_without_path(name: str) -> str:
    """Return the name of an encoder; of a local folder its last part, or the run that its `model` belongs to."""
    path = Path(name)
    if not path.is_absolute() and not path.is_dir():
        return name
    path = path.resolve()
    return (path.name == "model" and path.parent.name) or path.name
