"""Translations: results of a reader for a translation task, and content of parallel corpora."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, TypeVar

from metasearch.config.recipe import Role
from metasearch.config.task import Kind
from metasearch.io import fingerprint_of

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, tuple[Item, ...]]:
    """Group items by key; keys and items keep their order."""
    table: dict[Key, list[Item]] = {}
    for item in items:
        table.setdefault(key(item), []).append(item)
    return {value: tuple(of_value) for value, of_value in table.items()}


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in the pivot language, which the teacher knows, and its translation."""

    source: str
    target: str
    languages: tuple[str, str]

    roles: ClassVar[Mapping[str, Role]] = {"source": "text", "target": "text"}
    ids: ClassVar[tuple[str, ...]] = ()
    score: ClassVar[None] = None
    answers: ClassVar[tuple[str, ...]] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def lines(self) -> tuple[str, ...]:
        """Return both texts in one line."""
        return (f"{self.source}  |  {self.target}",)


@dataclass(frozen=True)
class TranslationData:
    """Pairs of a text in the pivot language (`source`) and its translation (`target`), in a fixed order.

    The pairs of one language are one file: its texts are what a text of the other side is searched among. So a file
    is the unit that is never cut, a *group* in the sense of `metasearch.data.records`; its name is its language.

    Attributes:
        pairs: file after file; the order within a file breaks ties in rankings.
        named: name → languages over which a mean is reported, such as `14` → `ara`, `cmn`, ...; also languages
            that have no pairs.
        given: the split of each file where the data comes split; empty otherwise.
    """

    pairs: tuple[Translation, ...]
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    kind: ClassVar[Kind] = "translation"

    @cached_property
    def by_language(self) -> dict[str, tuple[Translation, ...]]:
        """Pairs by the language of the translation, in file order."""
        return grouped(self.pairs, lambda pair: pair.languages[1])

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Files by the language of their translations, in the task's order."""
        return tuple(self.by_language)

    @cached_property
    def languages(self) -> frozenset[str]:
        """Languages that have texts, the pivot among them."""
        return frozenset(code for pair in self.pairs for code in pair.languages)

    def select(self, groups: Collection[str]) -> "TranslationData":
        """Return the data in these files."""
        wanted = set(groups)
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.languages[1] in wanted))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that an evaluation can see."""
        return fingerprint_of((*p.languages, p.source, p.target) for p in self.pairs)

    def describe(self) -> str:
        """Return the size in words, such as `32692 translations, in 36 languages`."""
        return f"{len(self.pairs)} translations, in {len(self.by_language)} languages"
