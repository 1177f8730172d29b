"""Settings for an index, for searches, and for a tuning."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field

from metasearch.config.base import Count, Flag, Length, Positive, Seed, Settings
from metasearch.config.languages import Language, normalise_tag, parse_tag
from metasearch.config.precision import EncodingSetting
from metasearch.config.roles import PublicRole
from metasearch.config.run import DEFAULT_ENCODER, Device, EncoderConfig

# Conditions on the fields of a passage: NAME=VALUE, NAME!=VALUE, or NAME and a number after <, <=, > or >=, such as
# `price<10`. A name has none of the characters `=!<>"`. Spaces around name and value do not count.

_MOST = 32
"""Conditions of a search."""
_LONGEST = 1000
"""Characters of a condition."""
_FORM = re.compile(r'([^=!<>"]*)(!=|<=|>=|=|<|>)(.*)', re.S)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Condition:
    """A condition on a field: its name, an operator (`=`, `!=`, `<`, `<=`, `>` or `>=`) and the text of a value."""

    name: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse a condition; `ValueError` if the text is not one."""
        short = text if len(text) <= 60 else f"{text[:60]}…"
        if len(text) > _LONGEST:
            raise ValueError(f"'{short}': a condition has at most {_LONGEST:,} characters")
        match = _FORM.fullmatch(text)
        if not match or not match[1].strip():
            raise ValueError(f"'{short}': expected NAME=VALUE, or another of != < <= > >=, such as price<10")
        found = cls(match[1].strip(), match[2], match[3].strip())
        if found.operator not in ("=", "!=") and found.number is None:
            raise ValueError(f"'{short}': expected a number after {found.operator}, got '{found.value[:40]}'")
        return found

    @property
    def number(self) -> int | float | None:
        """The value as a number; None if it is none."""
        return read_number(self.value)


Conditions = Sequence[Condition]
"""Conditions that a passage meets all."""


def read_number(text: str) -> int | float | None:
    """Return the finite number that a text is; None for other texts."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    if len(text) < 20 and not set(text) & set(".eE"):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else None


def parse_conditions(value: Any) -> Any:
    """Return conditions as values, from a list of their texts or a mapping of names to equal values.

    Example:
        >>> parse_conditions({"topic": "news", "year": 2024})
        (Condition(name='topic', operator='=', value='news'), Condition(name='year', operator='=', value='2024'))
    """
    if isinstance(value, Mapping):
        value = [_equality(name, wanted) for name, wanted in value.items()]
    if not isinstance(value, list | tuple) or not all(isinstance(each, str | Condition) for each in value):
        raise ValueError('expected a list such as ["price<10"], or an object such as {"topic": "news"}')
    if len(value) > _MOST:
        raise ValueError(f"{len(value)} conditions; {_MOST} at most")
    return tuple(each if isinstance(each, Condition) else Condition.parse(each) for each in value)


def _equality(name: Any, value: Any) -> str:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"'{str(name)[:40]}': expected a text, a number or a boolean, got {str(value)[:40]}")
    if set(str(name)) & set('=!<>"'):
        raise ValueError(f"'{str(name)[:40]}': the name of a field to filter by has none of the characters =!<>\"")
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


ALWAYS = "always"
"""Word in `IndexSettings.detect`, before the languages: detection overrides the language that a document states."""


def _languages(value: Any) -> Any:
    """Return `all` for a list with only this word, else canonical tags; a union would name each of its types."""
    if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
        return value
    first = (ALWAYS,) if ALWAYS in value else ()
    rest = [tag for tag in value if tag != ALWAYS]
    if rest == ["all"] or (first and not rest):
        return first or "all"
    return (*first, *map(parse_tag, rest))


class IndexSettings(Settings):
    """How documents become passages and embeddings; an index keeps them.

    Attributes:
        prompts: texts before the texts of a role, instead of the encoder's own.
    """

    length: Annotated[Length | None, Flag(name="--chunk-tokens", metavar="TOKENS")] = None
    """Longest passage; by default 128 tokens, or fewer if the encoder reads fewer."""
    overlap: Annotated[Count, Flag(name="--chunk-overlap", metavar="TOKENS")] = 0
    """Tokens that passages may share; by default 0."""
    language: Annotated[Language | None, Flag(metavar="TAG")] = None
    """Language of documents without a tag, such as de."""
    detect: Annotated[
        tuple[Literal["always"] | Language, ...] | Literal["all"] | None,
        BeforeValidator(_languages),
        Flag(metavar="all|TAGS", comma=True),
    ] = None
    """Detect languages of texts without a tag, such as de,en; always,de,en overrides tags, too."""
    names: Annotated[bool, Flag(name="--language-from-filename")] = True
    """Read tags from names such as faq.de.md; on by default."""
    translations: Annotated[Literal["path", "hreflang", "none"] | None, Flag(metavar="path|hreflang|none")] = None
    """Find translations by path or by hreflang alone, or take no pages for translations; by default by both."""
    titles: bool = True
    """Put titles before passages; on by default."""
    column: Annotated[str, Flag(metavar="NAME")] = "text"
    """Column with the text of rows; by default text."""
    neutral: bool | None = None
    """Remove language bias; by default where two languages have five passages."""
    keep_repeated: bool = False
    """Keep menus and footers, which most pages share; off by default."""
    prompts: Annotated[Mapping[PublicRole, str], Flag(name="--prompt")] = {}
    precision: EncodingSetting = "auto"
    """Encode in this precision; auto is as before, or bfloat16 where this CPU is faster in it."""


class RankingSettings(Settings):
    """How passages are ranked; None is as the index says, or else `RANKED_BY_DEFAULT`."""

    hybrid: bool | None = None
    """Rank by words (BM25), too, for names and codes."""
    expand: bool | None = None
    """Average passages with neighbours in other languages."""
    balance: bool | None = None
    """Normalise scores per language; by default where most pages are translated."""
    by: Annotated[Literal["group", "page", "passage"] | None, Flag(metavar="group|page|passage")] = None
    """Rank pages with their translations, pages, or passages; by default group."""

    def completed(self, other: "RankingSettings") -> Self:
        """Return the settings with values of another in place of None."""
        unset = [name for name in RankingSettings.model_fields if getattr(self, name) is None]
        return self.model_copy(update={name: getattr(other, name) for name in unset})

    @property
    def options(self) -> list[str]:
        """The options of `metasearch search` that rank so, where they differ from the defaults."""
        flags = [f"--{name}" for name in ("hybrid", "expand", "balance") if getattr(self, name)]
        return flags + [f"--by {self.by}"] * (self.by in ("page", "passage"))


class SearchSettings(RankingSettings):
    """Settings for a search.

    Attributes:
        rerank: passages that a cross-encoder reranks for each query; 0 reranks none.
    """

    rerank: Count = 0

    top_k: Positive = 10
    """Hits for each query."""
    languages: Annotated[
        tuple[Annotated[str, AfterValidator(normalise_tag)], ...], Flag(name="--language", metavar="TAGS", comma=True)
    ] = ()
    """Languages of hits, such as de,en; by default all."""
    prefer: Annotated[tuple[Annotated[str, AfterValidator(normalise_tag)], ...], Flag(metavar="TAGS", comma=True)] = ()
    """Show a page with translations in these languages, such as de,en; by default in the query's, then in English."""
    where: Annotated[tuple[Condition, ...], BeforeValidator(parse_conditions), Flag(metavar="CONDITION")] = ()
    """Condition on a field of rows, such as topic=news or 'price<10'; repeatable."""


_SITE = re.compile(r"(https?)://((?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)(/[^?#]*)?", re.I)
_SCHEME = re.compile(r"\A(?:[a-z]+:)?/+", re.I)
_EXAMPLE_SITE = "https://help.example.org/"


def parse_site(text: str) -> str:
    """Return the address of a site as paths of documents are added to it; `none` and the empty text are no site.

    `ValueError` for all but an absolute http or https address; it names the nearest right form.

    Example:
        >>> parse_site("https://help.example.org/de")
        'https://help.example.org/de/'
    """
    text = text.strip()
    if text in ("", "none"):
        return ""
    found = _SITE.fullmatch(text)
    if not found:
        expected = f"expected an address such as {_EXAMPLE_SITE}, without query and fragment"
        raise ValueError(f"{expected}. Did you mean '{_nearest_site(text)}'?")
    scheme, host, path = found.groups("")
    path = quote(path.rstrip("/"), safe="/%:@!$&'()*+,;=", errors="surrogateescape")
    return f"{scheme.lower()}://{host}{path}/"


def _nearest_site(text: str) -> str:
    """Return an address without what no address of a site has: user, query and fragment."""
    host, _, path = re.split("[?#]", _SCHEME.sub("", text))[0].partition("/")
    scheme = "http" if text.lower().startswith("http:") else "https"
    nearest = f"{scheme}://{host.rpartition('@')[2]}/{path}"
    return parse_site(nearest) if _SITE.fullmatch(nearest) else _EXAMPLE_SITE


def without_password(address: str) -> str:
    """Return the address of an index in a database without its password; a folder stays the same.

    Example:
        >>> without_password("postgresql://ada:secret@localhost/shop/help?sslmode=require")
        'postgresql://ada@localhost/shop/help?sslmode=require'
    """
    return re.sub(r"([?&]password=)[^&]*", r"\1***", re.sub(r"(://[^:@/?]*):[^?]*@", r"\1@", address))


class TuneConfig(Settings):
    """Everything that `metasearch tune` depends on, except the content of files and checkpoints.

    `labels` is empty if they were given in memory; `columns` maps names of values to columns.
    """

    kind: Literal["tune"] = "tune"
    labels: str = ""
    columns: Mapping[str, str] = {}
    ignore_identical_ids: bool = False
    """Labels in a BEIR folder: do not rank a document for the query with the same id, as in ArguAna."""
    documents: Annotated[tuple[str, ...], Flag(metavar="PATH", kind="paths")] = ()
    """File or folder to search, as for `metasearch index`; repeatable."""
    base: Annotated[tuple[str, ...], Flag(metavar="ADDRESS[=FOLDER]")] = ()
    """Address that stands for the documents or a folder, such as https://example.org/help/=help; repeatable."""
    translations: Annotated[tuple[str, ...], Flag(metavar="PATH", kind="paths")] = ()
    """File or folder of translations, as for `metasearch distill --corpus`; repeatable."""
    encoder: EncoderConfig = EncoderConfig(name=DEFAULT_ENCODER)
    learners: Annotated[tuple[str, ...], Flag(metavar="LIST", comma=True)] = ()
    """Further learners to try, such as maml,maml-align."""
    folds: Annotated[int, Field(ge=3, le=20)] = 4
    """Held-out folds; fewer if there are few labels."""
    device: Device = "auto"
    """Device to run on; auto takes a GPU if there is one."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed of folds and episodes."""
    same_page: bool | None = None
    """Translations of a page answer what it answers; by default if the paths of the documents show them."""
    accept: bool = False
    """Keep a step although it is worse for a language or side, or the labels may be wrong, as the report says."""
