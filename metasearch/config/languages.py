"""Language tags: one parser for every place that reads a language, in data, file names, tasks and options.

A tag is that of BCP 47 (RFC 5646, section 2.1), such as `de`, `pt-BR`, `sr-Latn` and `zh-Hant-TW`. Input may have any
case and `_` for `-`; output has the case of RFC 5646, section 2.1.1. Languages have two or three letters.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Annotated

from pydantic import AfterValidator

UNKNOWN = "und"
"""Tag of an undetermined language (ISO 639-2)."""

# ISO 639-1, and the languages without a code of two letters that have many web pages. Other codes of three letters
# are mostly English words.
_LANGUAGE_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
    "ast ceb chr ckb dsb fil fur gsw haw hsb kab nds szl yue zgh"
)
# ISO 15924: scripts in everyday use. `Java` and `Hang` are words in the names of files.
_SCRIPT_CODES = (
    "adlm arab armn beng brai cans cher copt cyrl deva ethi geor grek gujr guru hani hans hant hebr hira jpan khmr "
    "knda kore laoo latn mlym mong mtei mymr nkoo olck orya sinh syrc taml telu tfng thaa thai tibt"
)
# ISO 3166-1.
_REGION_CODES = (
    "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz ca "
    "cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga "
    "gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp "
    "ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms "
    "mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs "
    "ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw "
    "tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
_LANGUAGES, _SCRIPTS, _REGIONS = (frozenset(codes.split()) for codes in (_LANGUAGE_CODES, _SCRIPT_CODES, _REGION_CODES))
_TAG = re.compile(
    r"(?P<language>[a-z]{2,3}(?:-[a-z]{3}){0,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|[0-9]{3}))?"
    r"(?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)"
    r"(?P<extensions>(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?)"
)
# Within the name of a file: language, script, region. The language has lower case: `README_KR` is about Korea.
_NAME = re.compile(
    r"(?P<language>[a-z]{2,3})(?:[-_](?P<script>[A-Za-z]{4}))?(?:(?P<mark>[-_])(?P<region>[A-Za-z]{2}|[0-9]{3}))?"
)
_LOCALE = re.compile(r"[A-Z]{2,3}(?=[-_])")


def parse_tag(text: str) -> str:
    """Return a language tag in its canonical form: `zh-Hant-TW` for `ZH_hant_tw`.

    Example:
        >>> parse_tag("pt_br"), parse_tag("SR-latn"), parse_tag("es-419")
        ('pt-BR', 'sr-Latn', 'es-419')
    """
    match = _TAG.fullmatch(text.strip().replace("_", "-").lower())
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a language tag such as de, fil or zh-CN")
    parts = [match["language"], (match["script"] or "").title(), (match["region"] or "").upper()]
    return "-".join(filter(None, parts)) + match["variants"] + match["extensions"]


Language = Annotated[str, AfterValidator(parse_tag)]
"""A language tag of a declaration."""


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


def is_listed(tag: str) -> bool:
    """Return whether document names may have this language."""
    return primary_language(tag) in _LANGUAGES


def parse_name(text: str, cased: bool = False) -> str:
    """Return the tag in part of a file name, in canonical form, or an empty text.

    Codes of two letters, scripts and regions must exist; any three letters pass, see `is_listed`. With `cased`, a
    region behind a hyphen must have capitals, because in `en-de`, `de` may be another language.
    """
    match = _NAME.fullmatch(_LOCALE.sub(lambda found: found[0].lower(), text, count=1))
    if match is None:
        return ""
    language, script, region = match["language"], match["script"], match["region"]
    exists = (
        (len(language) == 3 or language in _LANGUAGES)
        and (not script or script.lower() in _SCRIPTS)
        and (not region or region.isdigit() or region.lower() in _REGIONS)
    )
    lower = cased and region and match["mark"] == "-" and region != region.upper()
    return parse_tag(text) if exists and not lower else ""


def parse_pair(text: str, known: Collection[str]) -> tuple[str, str]:
    """Return the two languages in a pair such as `sr-Latn-en`, in canonical form; `ValueError` if it is none.

    `known` languages distinguish the region in `pt-br-de` from a language.
    """
    parts = text.strip().split("-")
    pairs = []
    for end in range(1, len(parts)):
        with suppress(ValueError):
            pairs.append((parse_tag("-".join(parts[:end])), parse_tag("-".join(parts[end:]))))
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
