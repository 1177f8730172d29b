"""Transfer modes and language arrangements in the papers' own notation, parsed into typed values.

A *variant* names the languages of the two sides of an example: `el_ar` asks in Greek and answers in Arabic,
`el_{ar,el,hi}` answers in three languages. An *arrangement* is a chain of two or three variants,
`el_el -> el_ar -> el_{ar,el,hi}`; a *pattern* has no languages, `mono -> bi -> multi` (MAML-Align paper, Table 4).
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from metasearch.config.languages import format_tag

VariantKind = Literal["mono", "bi", "multi"]
_KINDS: tuple[VariantKind, ...] = ("mono", "bi", "multi")
_VARIANT = re.compile(r"(?P<query>[^{}_]+)_(?P<candidates>[^{}_,]+|\{[^{}]+\})")


class _Parsed:
    """Lets pydantic read the value from its written form."""

    @classmethod
    def parse(cls, text: str) -> Self:
        raise AssertionError("each value has its own parser")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(str(value)),
            # Written as in the papers again, which `parse` reads back.
            serialization=core_schema.to_string_ser_schema(),
        )


@dataclass(frozen=True, order=True)
class Variant(_Parsed):
    """The languages of a question and of its candidates, in order, such as `el_{ar,el,hi}`."""

    query: str
    candidates: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `el_ar` or `el_{ar,el}`; `ValueError` explains a mistake."""
        text = text.strip()
        wrong = f"'{text}' is not a language variant; write el_ar or el_{{ar,el}}, and regions with a hyphen"
        match = _VARIANT.fullmatch(text)
        if match is None:
            raise ValueError(wrong)
        try:
            query, *candidates = map(format_tag, (match["query"], *match["candidates"].strip("{}").split(",")))
        except ValueError as error:
            raise ValueError(f"{wrong}: {error}") from None
        if len(set(candidates)) < len(candidates):
            raise ValueError(f"'{text}' names a language twice")
        return cls(query, tuple(candidates))

    @property
    def kind(self) -> VariantKind:
        """`mono`: one candidate language, the query's own; `bi`: one other language; `multi`: several."""
        if len(self.candidates) > 1:
            return "multi"
        return "mono" if self.candidates == (self.query,) else "bi"

    @property
    def languages(self) -> frozenset[str]:
        """All languages that take part."""
        return frozenset({self.query, *self.candidates})

    def __str__(self) -> str:
        many = ",".join(self.candidates)
        return f"{self.query}_{{{many}}}" if len(self.candidates) > 1 else f"{self.query}_{many}"


@dataclass(frozen=True)
class Pattern(_Parsed):
    """An arrangement without its languages, such as `mono -> bi -> multi`."""

    kinds: tuple[VariantKind, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `mono -> bi`; `ValueError` names the wrong link."""
        kinds: list[VariantKind] = []
        for word in _links(text, "pattern", "mono -> bi"):
            if word not in _KINDS:
                raise ValueError(f"'{word}' in '{text}' is none of {', '.join(_KINDS)}")
            kinds.append(word)
        return cls(tuple(kinds))

    def __str__(self) -> str:
        return " -> ".join(self.kinds)


@dataclass(frozen=True)
class Arrangement(_Parsed):
    """A chain of two or three variants, such as `el_el -> el_ar -> el_{ar,el,hi}`."""

    variants: tuple[Variant, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a chain of variants; `ValueError` explains a mistake."""
        return cls(tuple(Variant.parse(part) for part in _links(text, "arrangement", "el_el -> el_ar")))

    @property
    def pattern(self) -> Pattern:
        """The chain without its languages."""
        return Pattern(tuple(variant.kind for variant in self.variants))

    @property
    def languages(self) -> frozenset[str]:
        """All languages that take part."""
        return frozenset[str]().union(*(variant.languages for variant in self.variants))

    def __str__(self) -> str:
        return " -> ".join(map(str, self.variants))


def _links(text: str, what: str, example: str) -> list[str]:
    parts = [part.strip() for part in text.replace("→", "->").split("->")]
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"'{text}' is no {what} of two or three links such as '{example}'")
    return parts
