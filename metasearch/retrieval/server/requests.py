"""What may be asked for: the bodies of requests."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from metasearch.config.recipe import Role
from metasearch.data.formats.blank import blank
from metasearch.retrieval.server.errors import RequestError
from metasearch.retrieval.server.limits import Limits

ROLES: dict[str, Role] = {"query": "question", "document": "candidate", "passage": "candidate", "text": "text"}
"""Values of `input_type`, and the role in which an encoder reads such texts."""

TOP = 10
"""Hits of a query that does not say how many, unless `--max-hits` is less."""


def _first_wrong(value: Any) -> Any:
    """Refuse a list at the first item that is no text: a message for each of many would take seconds."""
    for i, item in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(item, str):
            raise ValueError(f"[{i}]: expected a text, got {_kind(item)}")
    return value


Texts = Annotated[list[str], BeforeValidator(_first_wrong)]


class _Request(BaseModel):
    """The body of a request: unknown keys are refused, and null in an optional key is the key's default."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        optional = {key for key, field in cls.model_fields.items() if not field.is_required()}
        return {key: value for key, value in body.items() if value is not None or key not in optional}


class EmbeddingsRequest(_Request):
    """The body of `POST /v1/embeddings`."""

    input: Any
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None
    input_type: Literal["query", "document", "passage", "text"] = "document"
    truncate: bool = True


class SearchRequest(_Request):
    """The body of `POST /search`."""

    query: str | None = None
    queries: Texts | None = None
    top: int | None = None
    languages: Texts = []
    hybrid: bool = False
    expand: bool = False
    balance: bool = False
    truncate: bool = True

    def most(self, limits: Limits) -> int:
        """Return how many hits are wanted; `RequestError` where that is none, or more than may be."""
        top = min(TOP, limits.hits) if self.top is None else self.top
        if not 1 <= top <= limits.hits:
            raise RequestError(422, "invalid_top", f"top: {top}; choose a number from 1 to {limits.hits}")
        return top

    def texts(self) -> list[str]:
        """Return the queries; `RequestError` unless one of the two keys is there."""
        if (self.query is None) == (self.queries is None):
            raise RequestError(422, "invalid_body", "body: say what to search for: query, a text; or queries, a list")
        return [self.query] if self.query is not None else self.queries or []


def inputs(value: Any) -> list[str]:
    """Return the texts of `input`; `RequestError` where they are none."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise RequestError(422, "invalid_input", f"input: expected a text or a list of texts, got {_kind(value)}")
    first = texts[0] if texts and isinstance(texts[0], list) else texts
    if first and all(isinstance(each, int) for each in first):
        message = "input: lists of token ids are not taken, as they are of another tokenizer; send the texts"
        raise RequestError(422, "token_ids", f"{message} (in LangChain check_embedding_ctx_length=False)")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise RequestError(422, "invalid_input", f"input[{i}]: expected a text, got {_kind(text)}")
    return texts


def require_texts(name: str, texts: Sequence[str], limits: Limits) -> None:
    """Raise `RequestError` where there are no texts or too many, or one of them is blank or no text."""
    if not texts:
        raise RequestError(422, "no_input", f"{name}: the list is empty")
    if len(texts) > limits.inputs:
        message = f"{name}: {len(texts)} texts; a request may have {limits.inputs} (--max-inputs)"
        raise RequestError(422, "too_many_inputs", message)
    for i, text in enumerate(texts):
        if blank(text):
            raise RequestError(422, "blank_input", f"{name}[{i}]: the text is blank")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            message = f"{name}[{i}]: character {error.start} is {text[error.start]!r}, a half of a surrogate pair"
            raise RequestError(422, "invalid_input", message) from None


def require_whole(cut: Sequence[int], name: str, limit: int, truncate: bool) -> None:
    """Raise `RequestError` where texts were cut and the request does not allow that."""
    if cut and not truncate:
        message = f"{name}[{cut[0]}]: the text has more than {limit} tokens, which is all that the encoder reads"
        raise RequestError(422, "input_too_long", f"{message}; shorten it, or leave truncate out")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
