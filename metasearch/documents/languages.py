"""Language tags as they are written in documents, and as the names of files and folders tell them."""

import re
from collections.abc import Iterable

from metasearch.documents.passage import UNKNOWN
from metasearch.spec.arrangement import language_of

# ISO 639-1, and those of three letters that have none of two and are written on many pages; most others are words.
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
    "ast ceb chr ckb dsb fil fur gsw haw hsb kab nds szl yue zgh"
)
_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
# Within a name a region or script is in the case of BCP 47; `en-us` as a whole name is one, too.
_END = re.compile(r"(?:.*[._-])(?P<tag>[a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?)")
_WHOLE = re.compile(r"[a-z]{2,3}(?:[-_](?:[A-Za-z]{2}|[A-Z][a-z]{3}))?")


def tag_of(written: str) -> str:
    """Return a language tag in the case of BCP 47, with hyphens: `zh-Hant-TW` for `ZH_hant_tw`.

    Where both take a tag, it is spelt as `metasearch.spec.arrangement.language_of` spells it.

    Raises:
        ValueError: it is no language tag.

    Example:
        >>> tag_of("pt_br"), tag_of("es-419"), tag_of("EN")
        ('pt-BR', 'es-419', 'en')
    """
    tag = written.strip().replace("_", "-").lower()
    if not _TAG.fullmatch(tag):
        raise ValueError(f"'{written[:40]}' is not a language tag such as de, fil or zh-CN")
    base, *more = tag.split("-")
    return "-".join([base, *map(_subtag, more)])


def _subtag(part: str) -> str:
    if not part.isalpha() or len(part) > 4:
        return part
    return part.upper() if len(part) == 2 else part.title()


def language_of_name(stem: str, folders: Iterable[str]) -> str:
    """Return the language that a file's name tells, else its folders, the nearest first; the empty string for none.

    A name ends in a tag after a dot, a hyphen or an underscore, or is one; a folder is one.

    Args:
        stem: the file's name without its suffix, such as `faq.de`, `faq_pt-BR` or `de`.
        folders: names of the folders that hold it, the outermost first.
    """
    if tag := _whole(stem):
        return tag
    if (match := _END.fullmatch(stem)) and (tag := _known(match["tag"])):
        return tag
    return next(filter(None, map(_whole, reversed([*folders]))), "")


def _whole(name: str) -> str:
    return _known(name) if _WHOLE.fullmatch(name) else ""


def _known(name: str) -> str:
    return language_of(name) if re.split("[-_]", name)[0] in _CODES.split() else ""


def known(tag: str) -> bool:
    """Return whether a tag tells a language: `und` and the empty string do not."""
    return tag not in ("", UNKNOWN)
