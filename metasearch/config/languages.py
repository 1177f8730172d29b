"""Language tags: one parser for every place that reads a language, in data, file names and options.

A tag is that of BCP 47 (RFC 5646, section 2.1), such as `de`, `pt-BR`, `sr-Latn` and `zh-Hant-TW`. Input may have any
case and `_` for `-`. Output is canonical (RFC 5646, section 4.5, and CLDR), by langcodes: each language has one tag, so
that `iw` is `he`, `deu` is `de`, `tl` is `fil`, `cmn` is `zh` and `sh` is `sr-Latn`. A task keeps the tags that it
declares, since its files are named by them; they are compared in canonical form.

langcodes is imported with the first tag that is canonicalised: commands that read none start without it.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from typing import Annotated

from pydantic import AfterValidator

UNKNOWN = "und"
"""Tag of an undetermined language (ISO 639-2)."""

# Languages without a code of two letters that have many web pages; other codes of three are mostly English words.
_LONG_CODES = "ast ceb chr ckb dsb fil fur gsw haw hsb kab nds szl yue zgh"
_REPLACED = "bh in iw ji jw mo nb sh tl tw"
# Retired codes that are words or ends of names: `sign_in`, `install.sh`, `de.mo`.
_WORDS = ("in", "mo", "sh")
# Scripts beside those that are the only one of a language (Suppress-Script of the IANA registry). `Java` and `Hang`
# are words in the names of files.
_FURTHER_SCRIPTS = "Adlm Brai Cans Cher Copt Hani Hans Hant Hira Mong Mtei Olck Syrc Tfng"
_PRIVATE_REGION = re.compile("AA|EU|Q[M-Z]|X[A-Z]|ZZ")
# langcodes keeps Bokmal apart from Norwegian; CLDR has it as the Norwegian that `no` means.
_NORWEGIAN = re.compile(r"nb(?=-|$)")
_TAG = re.compile(
    r"(?P<language>[a-z]{2,3}(?:-[a-z]{3}){0,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|[0-9]{3}))?"
    r"(?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)"
    r"(?P<extensions>(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?)"
)
# Irregular tags of RFC 5646, section 2.2.8, that have a language.
_IRREGULAR = re.compile("en-gb-oed|i-(?:ami|bnn|hak|klingon|lux|navajo|pwn|tao|tay|tsu)|sgn-(?:be-fr|be-nl|ch-de)")
# Within the name of a file: language, script, region. The language has lower case: `README_KR` is about Korea.
_NAME = re.compile(
    r"(?P<language>[a-z]{2,3})(?:[-_](?P<script>[A-Za-z]{4}))?(?:(?P<mark>[-_])(?P<region>[A-Za-z]{2}|[0-9]{3}))?"
)
_LOCALE = re.compile(r"[A-Z]{2,3}(?=[-_])")


def format_tag(text: str) -> str:
    """Return a language tag with the case and the hyphens of RFC 5646 (section 2.1.1), and with the same subtags.

    Example:
        >>> format_tag("pt_br"), format_tag("SR-latn"), format_tag("IW")
        ('pt-BR', 'sr-Latn', 'iw')
    """
    lower = text.strip().replace("_", "-").lower()
    match = _TAG.fullmatch(lower)
    if match is None:
        if _IRREGULAR.fullmatch(lower):
            return lower
        raise _no_tag(text)
    parts = [match["language"], (match["script"] or "").title(), (match["region"] or "").upper()]
    return "-".join(filter(None, parts)) + match["variants"] + match["extensions"]


def parse_tag(text: str) -> str:
    """Return a language tag in its canonical form; `ValueError` for a text that is no tag.

    Example:
        >>> parse_tag("pt_br"), parse_tag("ZH-cmn-hant"), parse_tag("iw"), parse_tag("deu-Latn"), parse_tag("sh")
        ('pt-BR', 'zh-Hant', 'he', 'de', 'sr-Latn')
    """
    return _canonical(format_tag(text))


@lru_cache(4096)
def _canonical(tag: str) -> str:
    # Most tags are a current code of two letters: they need no library, whose import takes 20 ms.
    if len(tag) == 2 and tag not in _REPLACED.split():
        return tag
    from langcodes import standardize_tag

    before = ""
    # A replacement may be replaced in turn.
    while tag != before:
        try:
            before, tag = tag, _NORWEGIAN.sub("no", standardize_tag(tag, macro=True))
        except ValueError:
            raise _no_tag(tag) from None
    return tag


def _no_tag(text: str) -> ValueError:
    return ValueError(f"'{text[:40]}' is not a language tag such as de, fil or zh-CN")


Language = Annotated[str, AfterValidator(parse_tag)]
"""A language tag of an option or setting, in canonical form."""
DeclaredLanguage = Annotated[str, AfterValidator(format_tag)]
"""A language tag in a task, as written, because names of data files contain it."""


def normalise_tag(text: str) -> str:
    """Return a tag in canonical form; any other text unchanged, for a message with the nearest tag."""
    try:
        return parse_tag(text)
    except ValueError:
        return text


def primary_language(tag: str) -> str:
    """Return the first subtag: `zh` for `zh-CN`."""
    return tag.partition("-")[0]


def is_known(tag: str) -> bool:
    """Return whether a tag names a language: `und` and the empty string do not."""
    return tag not in ("", UNKNOWN)


def spelling_of(tag: str, known: Iterable[str]) -> str:
    """Return the known tag for the same language, else the tag itself in canonical form.

    Example:
        >>> spelling_of("he", ["de", "iw"]), spelling_of("iw", ["de"])
        ('iw', 'he')
    """
    tag = normalise_tag(tag)
    return next((each for each in known if normalise_tag(each) == tag), tag)


def parse_name(text: str, cased: bool = False, common: bool = False) -> str:
    """Return the tag in part of a file name, in canonical form, or an empty text.

    Codes of two letters, scripts and regions must exist; any three letters pass. With `cased`, a region behind a hyphen
    must have capitals, because in `en-de`, `de` may be another language. With `common`, as in the names of documents,
    codes that are mostly words do not count.
    """
    written = _LOCALE.sub(lambda found: found[0].lower(), text, count=1)
    match = _NAME.fullmatch(written)
    if match is None:
        return ""
    language, script, region = match["language"], match["script"], match["region"]
    if common and (language in _WORDS or (len(language) == 3 and language not in _LONG_CODES.split())):
        return ""
    if cased and region and match["mark"] == "-" and region != region.upper():
        return ""
    exists = (
        (len(language) == 3 or _is_valid(language))
        and (not script or script.title() in _scripts())
        and (not region or region.isdigit() or region.upper() in _regions())
    )
    return parse_tag(text) if exists else ""


@cache
def _is_valid(language: str) -> bool:
    from langcodes import tag_is_valid

    return tag_is_valid(language)


@cache
def _scripts() -> frozenset[str]:
    from langcodes.data_dicts import DEFAULT_SCRIPTS

    return frozenset([*DEFAULT_SCRIPTS.values(), *_FURTHER_SCRIPTS.split()])


@cache
def _regions() -> frozenset[str]:
    """Return the codes of countries (ISO 3166-1): codes with a number, without private use."""
    from langcodes.data_dicts import TERRITORY_REPLACEMENTS

    found = (region for number, region in TERRITORY_REPLACEMENTS.items() if number.isdigit())
    return frozenset(region for region in found if region.isalpha() and not _PRIVATE_REGION.fullmatch(region))


def parse_pair(text: str, known: Collection[str]) -> tuple[str, str]:
    """Return the two languages in a pair such as `sr-Latn-en`, as written; `ValueError` for another text.

    `known` languages distinguish the region in `pt-br-de` from a language.
    """
    parts = text.strip().split("-")
    pairs = []
    for end in range(1, len(parts)):
        with suppress(ValueError):
            pairs.append((format_tag("-".join(parts[:end])), format_tag("-".join(parts[end:]))))
    if not pairs:
        raise ValueError(f"'{text}' is not a pair of languages such as ar-en")
    least = min(pairs, key=lambda pair: len(set(pair) - set(known)))
    if foreign := [language for language in dict.fromkeys(least) if language not in known]:
        raise ValueError(f"{', '.join(foreign)} is not a language of the task")
    read = [f"{first} and {second}" for first, second in pairs if {first, second} <= set(known)]
    if len(read) > 1:
        raise ValueError(
            f"'{text}' can be read as {' or '.join(read)}; write regions with an underscore, such as pt_BR-en"
        )
    return least
