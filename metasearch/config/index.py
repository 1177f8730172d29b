"""Settings for an index and for searches."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from metasearch.config.base import Count, Flag, Length, Positive, Renamed, Settings
from metasearch.config.conditions import list_conditions
from metasearch.config.languages import Language, normalise_tag
from metasearch.config.recipe import ROLE_NAMES, Role

PASSAGE_LENGTH = 128
"""Tokens of a passage by default, if the encoder reads so many."""


def _all(value: Any) -> Any:
    """Return `all` for a list with only this word."""
    return "all" if isinstance(value, list | tuple) and [*value] == ["all"] else value


class IndexSettings(Settings):
    """How documents become passages and embeddings; an index keeps them.

    Attributes:
        prompts: texts before the texts of a role, instead of the encoder's own.
    """

    length: Annotated[Length | None, Flag(name="--chunk-tokens", metavar="TOKENS")] = None
    """Tokens of the longest passage, with prompt and special tokens; by default 128, or fewer if the encoder reads
    fewer."""
    overlap: Annotated[Count, Flag(name="--chunk-overlap", metavar="TOKENS")] = 0
    """Tokens that a passage may share with the one before; by default 0."""
    language: Annotated[Language | None, Flag(metavar="TAG")] = None
    """Language of documents without a language tag, such as de."""
    detect: Annotated[
        tuple[Language, ...] | Literal["all"] | None, BeforeValidator(_all), Flag(metavar="all|TAGS", comma=True)
    ] = None
    """Detect the language of other texts, among such as de,en,fr."""
    names: Annotated[bool, Flag(name="--language-from-filename")] = True
    """Read the language from names such as faq.de.md and de/faq.md; on by default."""
    titles: bool = True
    """Put a document's title before each of its passages; on by default."""
    column: Annotated[str, Flag(metavar="NAME")] = "text"
    """Column with the text in files of rows; by default text."""
    neutral: bool = False
    """Remove language bias from the embeddings; off by default."""
    prompts: Annotated[Mapping[Annotated[Role, Renamed(ROLE_NAMES)], str], Flag(name="--prompt")] = {}


class RankingSettings(Settings):
    """How passages are ranked."""

    hybrid: bool = False
    """Rank by the query's words (BM25), too, and fuse both rankings by reciprocal rank."""
    expand: bool = False
    """Average passages with neighbours in other languages, for translated documents."""
    balance: bool = False
    """Normalise scores per language, for answers in several languages."""


RERANK_TOP = 100
"""Passages that a cross-encoder reads for a query by default."""


class RerankSettings(Settings):
    """A cross-encoder that reranks the best passages of a search."""

    model: Annotated[str | None, Flag(name="--rerank", metavar="MODEL")] = None
    """Rerank with this cross-encoder, a local folder or hub name."""
    top: Annotated[int, Field(ge=1, le=1000), Flag(name="--rerank-top")] = RERANK_TOP
    """Passages that the cross-encoder reads for each query, 1,000 at most."""


class SearchSettings(RankingSettings):
    """Settings for a search.

    Attributes:
        rerank: passages that a cross-encoder reranks for each query; 0 reranks none.
    """

    rerank: Count = 0

    top: Annotated[Positive, Flag(name="--top-k")] = 10
    """Hits for each query."""
    languages: Annotated[
        tuple[Annotated[str, AfterValidator(normalise_tag)], ...], Flag(name="--language", metavar="TAG")
    ] = ()
    """Language of hits, such as de; repeatable."""
    where: Annotated[tuple[str, ...], BeforeValidator(list_conditions), Flag(metavar="CONDITION")] = ()
    """Condition on a field of rows, such as topic=news or 'price<10'; repeatable."""
