"""The interface of a store, which holds an index, and the values that it takes and returns."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import commonest
from metasearch.errors import ConfigError, EncoderError, NonFiniteError, nearest
from metasearch.search.documents.pages import Blocks
from metasearch.search.documents.passage import Passage
from metasearch.search.documents.read import group_of, page_of
from metasearch.search.index.maps import Vectors
from metasearch.search.index.plan import SearchPlan
from metasearch.search.settings import Condition, Conditions

KEY_BYTES = 16
_OPTIONS = {
    "length": "--chunk-tokens", "overlap": "--chunk-overlap", "names": "--language-from-filename", "prompts": "--prompt"
}  # fmt: skip
"""Setting → the option of `metasearch index` with another name."""
FREE = ("detect", "neutral", "translations")
"""Settings that may change in an index with vectors."""
_SHOWN = 100
"""Names of fields that an error lists."""

Keys = NDArray[np.uint8]
"""Hashes of everything that a vector depends on, `(n, 16)`."""
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Ranking = tuple[Rows, Scores]
"""Rows and their scores, best first."""
Words = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Splits texts into numbered words; the tokenizer of an encoder does this for all of its languages."""
OnCount = Callable[[int, int], None]
"""Is told how many of how many are done."""


class SearchError(ConfigError):
    """A search with an argument that the index cannot serve: `param` names the argument, `code` the reason."""

    def __init__(self, param: str, code: str, message: str) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


@dataclass(frozen=True)
class PageVersion:
    """The best passage of a page's translation, and its address as in a `Hit`."""

    passage: Passage
    url: str = ""


@dataclass(frozen=True)
class Hit:
    """A passage that was found, at the first of its places, with its score for the query.

    Attributes:
        places: places of the documents that have this text with these fields, this one included.
        languages: languages of the places and of the page's translations, the language of the passage first.
        translations: the page's translations, where a hit is a page with its translations.
        url: address of the page, with the anchor of the passage; empty without one (`metasearch index --site`).
    """

    score: float
    passage: Passage
    places: int = 1
    languages: tuple[str, ...] = ()
    translations: tuple[PageVersion, ...] = ()
    url: str = ""


@dataclass(frozen=True)
class SourceFile:
    """A document file as it was when its passages were cut.

    Attributes:
        replaced: languages that it states and those that its texts are in, as JSON; empty for none.
        group: what it shares with its translations: its path without the language, or the addresses that its head
            names.
        url: address that its head names as canonical, or empty.
    """

    path: str
    size: int
    sha256: str
    language: str = ""
    replaced: str = ""
    group: str = field(default="", compare=False)
    url: str = field(default="", compare=False)


@dataclass(frozen=True, eq=False)
class FilePlaces:
    """The n passages of a document file: their keys `(n, 16)` and the lines `(n,)` in which they begin.

    Attributes:
        headings: headings and anchors of the passages as JSON: `[number, heading, anchor]` where they change.
        blocks: of a page, to compare it with others.
    """

    file: SourceFile
    keys: Keys
    lines: NDArray[np.int32]
    headings: str = "[]"
    blocks: Blocks | None = None


@dataclass(frozen=True)
class Kind:
    """An index's encoder and settings, which never change, but for `neutral`: stored vectors do not depend on it."""

    encoder: str
    fingerprint: str
    dimension: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def require_encoder(self, where: Path | str, fingerprint: str, dimension: int, name: str) -> None:
        """Raise `EncoderError` where vectors come from another encoder."""
        if (self.fingerprint, self.dimension) != (fingerprint, dimension):
            raise EncoderError(
                f"{where}: its vectors are of encoder '{self.encoder}' ({self.fingerprint}, {self.dimension} "
                f"dimensions), not of '{name}' ({fingerprint}, {dimension} dimensions); use that encoder, or make an "
                "index for this one in another folder"
            )

    def with_free(self, other: "Kind") -> "Kind":
        """Return the kind with the free settings of another."""
        free = {name: other.settings[name] for name in FREE if name in other.settings}
        return replace(self, settings={**self.settings, **free})

    def require_same(self, where: Path | str, other: "Kind") -> None:
        """Raise an error if another kind has another encoder, or other settings but for free ones."""
        self.require_encoder(where, other.fingerprint, other.dimension, other.encoder)
        ours, theirs = (json.loads(json.dumps(dict(kind.settings))) for kind in (self, other))
        for name in sorted((ours.keys() | theirs.keys()) - set(FREE)):
            before, now = ours.get(name), theirs.get(name)
            if before != now:
                option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
                raise ConfigError(
                    f"{where}: it was made with {name} {json.dumps(before)}, not {json.dumps(now)}; keep that setting "
                    f"({option}), or make an index in another folder"
                )


@dataclass(frozen=True, eq=False)
class PageScores:
    """The passages of some pages, page by page, and their scores for a query: n passages of P pages.

    Attributes:
        rows: of the passages, in the order of their page, `(n,)`.
        scores: of the passages, `(n,)`.
        starts: first passage of each page, `(P,)`.
        languages: language of each page, `(P,)`.
        groups: number of each page's group of translations, from 0, `(P,)`.
        shared: whether a passage stands on an earlier page, too, which hits show it at, `(n,)`; None where none does.
        whole: whether pages have all of their passages; else neighbours are missing, and a page is its best passage.
    """

    rows: Rows
    scores: Scores
    starts: Rows
    languages: Sequence[str]
    groups: Rows
    shared: NDArray[np.bool_] | None = None
    whole: bool = True


@dataclass(frozen=True)
class Scope:
    """Passages that count in a search.

    Attributes:
        languages: of passages; none means all.
        where: conditions on further fields, all of which a passage meets.
    """

    languages: Collection[str] = ()
    where: Conditions = ()


ALL = Scope()


@dataclass(frozen=True)
class CopyResult:
    """A copy's size, and the passages that were sent and deleted."""

    passages: int
    sent: int
    deleted: int


class Store(Protocol):
    """An index to be searched: vectors, passages and fields by row. Several threads may search at once.

    A row is a text in a language, with the places of the documents that have it. `LocalStore` is a folder;
    `metasearch.search.index.stores.Database` is the interface of a copy in a database.

    Attributes:
        name: the index, as errors name it.
        kind: encoder and settings of the index.
        plan: how the index is searched.
        languages: how many rows each language has, most first.
        root: the folder to which paths of documents are relative; None where they are not on this machine, or as given.
        site: address of the root, or empty.
        unknown: languages that the encoder hardly knows, and the reason of each (`encoders.unknown_languages`).
    """

    name: str
    kind: Kind
    plan: SearchPlan

    @property
    def languages(self) -> Mapping[str, int]: ...  # noqa: D102

    @property
    def unknown(self) -> Mapping[str, str]:  # noqa: D102
        return {}

    @property
    def root(self) -> Path | None:  # noqa: D102
        return None

    @property
    def site(self) -> str:  # noqa: D102
        return ""

    def canonical_url(self, file: str) -> str:
        """Return the address that a page names as its own; by default none is known."""
        return ""

    def __len__(self) -> int: ...

    def search(
        self, vectors: Vectors, top_k: int = 10, groups: Sequence[Collection[str]] = ((),), where: Conditions = ()
    ) -> list[Ranking]:
        """Return for each group of languages the best rows and their scores, best first, `(q, K)` each.

        Args:
            vectors: of queries, `(q, D)`.
            top_k: how many rows are wanted for each.
            groups: languages whose rows are ranked apart; an empty one has all languages.
            where: conditions on further fields, all of which a row meets.

        Raises:
            SearchError: no row is in one of the languages or has one of the fields.
        """
        ...

    def passages(self, rows: Sequence[int] | Rows) -> list[tuple[Passage, int]]:
        """Return the passages of rows at their first places, and how many places each has."""
        ...

    def score_pages(self, vector: Vectors, ranking: Ranking, scope: Scope = ALL) -> PageScores:
        """Return all passages in the pages of some rows and in their translations.

        By default only these rows are known, and pages are translations by the paths of their files.

        Args:
            vector: of the query, `(D,)`.
            ranking: rows, and their scores for the query.
            scope: passages to return.
        """
        pages: dict[tuple[str, int], list[int]] = {}
        found = [passage for passage, _ in self.passages(ranking[0])]
        for i, passage in enumerate(found):
            pages.setdefault(page_of(passage), []).append(i)
        order = np.array([i for own in pages.values() for i in own], np.int64)
        starts = np.cumsum([0, *map(len, pages.values())])[:-1]
        tags = [commonest(found[i].language for i in own) for own in pages.values()]
        groups = number_groups([group_of(found[own[0]]) for own in pages.values()], tags)
        return PageScores(ranking[0][order], ranking[1][order], starts, tags, groups, whole=False)

    def equal_rows(self, passages: Sequence[Passage], languages: Sequence[str]) -> list[dict[int, tuple[str, int]]]:
        """Return for each passage the rows with its text and fields: row → language and number of places.

        By default none are known, and equal texts in two languages are two hits.
        """
        return [{} for _ in passages]

    def rows_of(self, keys: Keys) -> Rows:
        """Return the rows with some keys, of keys that are there, `(r,)`; by default none are known."""
        return np.zeros(0, np.int64)

    def changed(self) -> bool:
        """Return whether the index was updated since it was opened."""
        return False

    def reopen(self) -> Self:
        """Return the index in its current state."""
        return self

    def expand(self) -> Self:
        """Return the index with expanded vectors (`metasearch.encoders.pool_scores`); `SearchError` without any."""
        raise SearchError("expand", "cannot_expand", f"{self.name} has no expanded vectors; search the folder")

    def search_words(self, words: Words, queries: Sequence[str], top_k: int, scope: Scope = ALL) -> list[Ranking]:
        """Return for each query the best rows by BM25 and their scores, best first, `(K,)` each."""
        raise SearchError("hybrid", "cannot_rank_words", f"{self.name} cannot rank by words")


def number_groups(names: Sequence[str], languages: Sequence[str]) -> Rows:
    """Return the number of each page's group, from 0, `(P,)`; arguments as `group_keys`."""
    numbers: dict[object, int] = {}
    keys = group_keys(names, languages, range(len(names)))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def group_keys(names: Sequence[str], languages: Sequence[str], pages: Sequence[object]) -> list[object]:
    """Return what each of P pages has in common with its translations: the same name in other languages.

    Pages of a name are apart where two of them are in one language: they have the name and themselves.
    """
    sizes, distinct = Counter(names), Counter(name for name, _ in {*zip(names, languages, strict=True)})
    both = zip(names, pages, strict=True)
    return [name if distinct[name] == sizes[name] else (name, page) for name, page in both]


def require_queries(vectors: Vectors, top_k: int) -> None:
    """Raise `NonFiniteError` for a vector that is not finite, and `ConfigError` where no row is asked for."""
    if not np.isfinite(vectors).all():
        raise NonFiniteError("the vector of a query is not finite")
    if top_k < 1:
        raise ConfigError(f"top_k {top_k}: expected 1 or more")


def require_languages(asked: Collection[str], known: Mapping[str, int]) -> None:
    """Raise `SearchError` for a language without rows."""
    for language in sorted(set(asked) - known.keys()):
        message = f"no passage is in language '{language}'.{nearest(language, known)}"
        raise SearchError("languages", "unknown_language", message)


def require_field(condition: Condition, known: Collection[str]) -> None:
    """Raise `SearchError` for a condition on a field that no row has."""
    if condition.name not in known:
        message = f"no passage has the field '{condition.name}'.{nearest(condition.name, islice(known, _SHOWN))}"
        raise SearchError("where", "unknown_field", message)


def keys_by_language(passages: Sequence[Passage], languages: Sequence[str]) -> Keys:
    """Return the keys of passages if they were in each of some languages, `(n · languages, 16)`, passage by passage."""
    return _stacked(_passage_key(each, tag) for each in passages for tag in languages)


def key_words(keys: Keys) -> NDArray[np.bytes_]:
    """Return keys as one word each, which can be sorted and compared, `(n,)`."""
    words: NDArray[np.bytes_] = np.ascontiguousarray(keys).view(f"S{KEY_BYTES}").reshape(len(keys))
    return words


def find_sorted(words: NDArray[Any], numbers: Rows, wanted: NDArray[Any]) -> Rows:
    """Return the number of each wanted word, -1 where it is not among the words, which are ascending."""
    if not len(words):
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(words, wanted), len(words) - 1)
    return np.where(words[place] == wanted, numbers[place], -1)


def fields_to_json(fields: Mapping[str, Any]) -> str:
    """Return further fields as JSON, names in alphabetical order; the empty text for no fields."""
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if fields else ""


def passage_keys(passages: Sequence[Passage]) -> Keys:
    """Return each passage's key, `(n, 16)`, from text, language and further fields, without its place.

    Two passages with the same key have the same vector, so that one of them is encoded.
    """
    return _stacked(_passage_key(each, each.language) for each in passages)


def _passage_key(passage: Passage, language: str) -> bytes:
    # With their lengths, so that no text can pass for a language and another text.
    fields = fields_to_json(passage.fields)
    content = f"{len(language)}:{language}{len(passage.text)}:{passage.text}{fields}"
    return hashlib.sha256(content.encode()).digest()[:KEY_BYTES]


def _stacked(keys: Iterable[bytes]) -> Keys:
    return np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
