"""Transfer modes and language arrangements in the papers' own notation, parsed into typed values.

A *variant* says in which languages the two sides of an example are: `el_ar` asks in Greek and answers in Arabic,
`el_{ar,el,hi}` answers in three languages. An *arrangement* is a chain of two or three variants,
`el_el -> el_ar -> el_{ar,el,hi}`; a *pattern* is such a chain with the languages left out, `mono -> bi -> multi`
(MAML-Align paper, Table 4).
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Kind = Literal["mono", "bi", "multi"]
_KINDS: tuple[Kind, ...] = ("mono", "bi", "multi")
_LANGUAGE = r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*"
_VARIANT = re.compile(
    rf"(?P<query>{_LANGUAGE})_(?:(?P<one>{_LANGUAGE})|\{{(?P<many>\s*{_LANGUAGE}\s*(?:,\s*{_LANGUAGE}\s*)*)\}})"
)


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
    """The languages of one set of examples, such as `el_{ar,el,hi}`.

    Attributes:
        query: language of the questions, or of one sentence of each pair.
        candidates: languages of the candidates, or of the other sentence, in the order written.
    """

    query: str
    candidates: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `el_ar` or `el_{ar,el}`; `ValueError` says what is wrong."""
        match = _VARIANT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text.strip()}' is not a language variant; write el_ar or el_{{ar,el}}")
        many = match["many"] or match["one"]
        candidates = tuple(code.strip() for code in many.split(","))
        if len(set(candidates)) < len(candidates):
            raise ValueError(f"'{text.strip()}' names a language twice")
        return cls(match["query"], candidates)

    @property
    def kind(self) -> Kind:
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
    """An arrangement with the languages left out, such as `mono -> bi -> multi`."""

    kinds: tuple[Kind, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `mono -> bi`; `ValueError` names the wrong link."""
        kinds: list[Kind] = []
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
        """Read a chain of variants; `ValueError` says what is wrong."""
        return cls(tuple(Variant.parse(part) for part in _links(text, "arrangement", "el_el -> el_ar")))

    @property
    def pattern(self) -> Pattern:
        """The chain with the languages left out."""
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
        raise ValueError(f"'{text}' is not {what} of two or three links such as '{example}'")
    return parts


def language_of(code: str) -> str:
    """Return a language code in one spelling, `zh-CN` for `zh_cn`; `ValueError` where it is no language code."""
    base, _, more = code.strip().replace("_", "-").partition("-")
    if not re.fullmatch(r"[a-z]{2,3}", base) or not re.fullmatch(r"([A-Za-z]{2,4})?", more):
        raise ValueError(f"'{code}' is not a language code such as de, fil or zh-CN")
    return f"{base}-{more.upper() if len(more) == 2 else more.title()}" if more else base
