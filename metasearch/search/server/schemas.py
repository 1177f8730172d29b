"""Request and answer bodies; source of the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from metasearch.config.roles import ROLE_NAMES, Role
from metasearch.errors import nearest
from metasearch.search.settings import Condition, RankingSettings, parse_conditions

ROLES: dict[str, Role] = {**ROLE_NAMES, "passage": "candidate"}
"""Values of `input_type`, and the role in which the encoder reads such texts; without a value they are `document`."""
PROJECTED = ("query", "document", "passage")
"""Values of `input_type` whose embeddings get the projection of a neutral index."""


class Body(BaseModel):
    """The body of a request. Unknown keys are refused, and null in an optional key means its default."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            raise ValueError("expected an object with keys")
        # One error, since one for each of a hundred thousand keys would block the server for seconds.
        for key in body:
            if key not in cls.model_fields:
                raise ValueError(f"{key}: unknown key.{nearest(key, cls.model_fields)}")
        return {key: value for key, value in body.items() if value is not None or cls.model_fields[key].is_required()}


def _list_texts(value: Any) -> Any:
    """Return `input` as a list; token ids raise an error."""
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first[0] if isinstance(first, list) and first else first, int):
        raise ValueError(
            "token ids belong to another tokenizer; send texts (in LangChain check_embedding_ctx_length=False)"
        )
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], Field(fail_fast=True)]
"""A list of texts, of which the first wrong item is reported."""


class EmbeddingsRequest(Body):
    """The body for `POST /v1/embeddings`."""

    input: Annotated[Texts, BeforeValidator(_list_texts, json_schema_input_type=str | list[str])]
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None
    input_type: Literal["query", "document", "passage", "text"] | None = None
    truncate: bool = True


class SearchRequest(Body, RankingSettings):
    """The body for `POST /search`: `query` or `queries`."""

    query: str | None = None
    queries: Texts | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    languages: Texts = []
    prefer: Texts = []
    rerank: bool | Annotated[int, Field(ge=1)] = False
    where: Annotated[
        tuple[Condition, ...],
        BeforeValidator(parse_conditions, json_schema_input_type=list[str] | dict[str, str | float | bool]),
    ] = ()
    truncate: bool = True

    @model_validator(mode="after")
    def _require_query(self) -> "SearchRequest":
        if (self.query is None) == (self.queries is None):
            raise ValueError("expected either query, a text, or queries, a list of texts")
        return self

    @property
    def texts(self) -> list[str]:
        """The queries."""
        return [self.query] if self.query is not None else self.queries or []


class Embedding(BaseModel):
    """A text's embedding: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingsAnswer(BaseModel):
    """The answer to `POST /v1/embeddings`. `truncated` lists the texts longer than `max_tokens`, counted from 0."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: dict[str, int]
    truncated: list[int]
    max_tokens: int


class FoundTranslation(BaseModel):
    """The best passage of a page's translation."""

    language: str
    file: str
    url: str
    heading: str
    anchor: str


class FoundPassage(BaseModel):
    """A passage and its score; `languages` are all in which documents have this text or a translation of the page.

    `heading` has the headings above the passage, `anchor` the id of the nearest element of an HTML page, and `url` the
    address of both; it is empty where the server knows no site.
    """

    score: float
    file: str
    line: int
    heading: str
    anchor: str
    language: str
    languages: list[str]
    url: str
    translations: list[FoundTranslation]
    text: str
    fields: dict[str, Any]


class QueryHits(BaseModel):
    """A query's hits, best first."""

    query: str
    hits: list[FoundPassage]


class SearchAnswer(BaseModel):
    """The answer to `POST /search`. `truncated` lists the queries longer than `max_tokens`, counted from 0."""

    results: list[QueryHits]
    model: str
    truncated: list[int]
    max_tokens: int


class IndexFacts(BaseModel):
    """The answer to `GET /index`.

    `max_hits` is the largest number of hits for a query; `ranking` is how requests are ranked that do not say;
    `unknown_languages` are those that the model hardly knows, with the reasons.
    """

    model: str
    dimensions: int
    max_hits: int
    passages: int
    languages: dict[str, int]
    ranking: dict[str, bool | str]
    unknown_languages: dict[str, str]


class Model(BaseModel):
    """The answer to `GET /v1/models/NAME`, as OpenAI's interface describes a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "metasearch"


class ModelList(BaseModel):
    """The answer to `GET /v1/models`: the one model that this server has."""

    object: Literal["list"] = "list"
    data: list[Model]


class Health(BaseModel):
    """The answer to `GET /health`: the status, `ready` or else the problem, and the model."""

    status: str
    model: str


class Live(BaseModel):
    """The answer to `GET /health/live`."""

    status: Literal["live"] = "live"
