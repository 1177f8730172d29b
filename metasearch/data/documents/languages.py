"""Languages from the names of files, siblings and folders, and of texts with py3langid."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from metasearch.config.languages import UNKNOWN, is_known, is_listed, normalise_tag, parse_name, primary_language
from metasearch.errors import ConfigError, nearest

Series = Mapping[str, Set[str]]
"""Name of files in a folder without the tag at its end → the tags."""
_FREQUENT = 0.05
"""Share of the texts above which a detected language is one of the texts, not a mistake about a short one."""


@dataclass(frozen=True, slots=True)
class _End:
    """The tag at the end of a name, the text before it, and the mark between them."""

    tag: str
    series: str = ""
    mark: str = ""

    @property
    def explicit(self) -> bool:
        """Whether the tag is hardly a word: it follows a dot, or has a script or region."""
        return self.mark == "." or "-" in self.tag


def find_series(stems: Iterable[str]) -> Series:
    """Return names in a folder that differ only in the tag at their end, such as `faq.de` and `faq.fr`."""
    series: dict[str, set[str]] = defaultdict(set)
    for end in filter(None, map(_read_end, stems)):
        if end.mark:
            series[end.series].add(end.tag)
    return series


def find_untagged(folders: Iterable[str]) -> Set[str]:
    """Return names without a tag that others in these folders extend by a tag: `pages` for `pages.de`."""
    ends = (name.rpartition(".") for name in folders)
    return {name for name, _, tag in ends if name and _read_tag(tag)}


def find_folder_language(name: str, untagged: Set[str], around: str) -> str:
    """Return the language in a folder's name: the name is a tag, or ends in a dot and a tag, such as `pages.zh_TW`.

    Files in `pages` next to `pages.zh_TW` are in one unknown language, `und`.
    """
    tag = _read_tag(name) or _read_tag(name.rpartition(".")[2])
    return tag or (UNKNOWN if name in untagged else around)


def find_language(stem: str, told: str, siblings: Series) -> str:
    """Return the language in a file's name, or its folder's name; empty if neither has one.

    The name is a tag, or ends in a dot, hyphen or underscore and a tag: `de`, `faq.de`, `README.pt-br`. Words look like
    tags, too: `git-rm` is not Romansh. So in a folder with a language, a name counts only if siblings have the same
    name with other tags. A tag that can be a word, as in `git-rm`, also needs a sibling in the folder's language.
    """
    end = _read_end(stem)
    if end is None or not told:
        return end.tag if end else told
    if told == UNKNOWN:
        return end.tag if end.explicit else told
    others = siblings.get(end.series, set()) - {end.tag} if end.mark else set()
    agrees = end.explicit or primary_language(told) in map(primary_language, others)
    return end.tag if others and agrees else told


def _read_end(stem: str) -> _End | None:
    """Return the longest tag at the end of a name."""
    if tag := _read_tag(stem):
        return _End(tag)
    for mark in re.finditer("[._-]", stem):
        if tag := _read_tag(stem[mark.end() :]):
            return _End(tag, stem[: mark.start()], mark[0])
    return None


def _read_tag(text: str) -> str:
    tag = parse_name(text)
    return tag if is_listed(tag) else ""


def detector(languages: Sequence[str] = ()) -> Callable[[str], str]:
    """Return a function from text to language tag, the likeliest of 97.

    Short texts are often taken for another language; fewer languages to choose from help.
    """
    from py3langid import langid  # takes a while, and few commands detect

    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    known = set(map(str, identifier.labels))
    chosen = list(dict.fromkeys(primary_language(normalise_tag(language)) for language in languages))
    for language in chosen:
        if language not in known:
            raise ConfigError(f"py3langid cannot detect the language '{language}'.{nearest(language, known)}")
    if chosen:
        identifier.set_languages(chosen)
    # It gives `zxx` for digits and marks alone.
    return lambda text: str(identifier.classify(text)[0]).replace("zxx", UNKNOWN)


def detect_all(texts: Sequence[str], languages: Sequence[str]) -> dict[str, str]:
    """Return each text's language.

    Without tags to choose from, the languages of at least one text in twenty and the most frequent one are detected
    first, and then chosen from.
    """
    distinct = list(dict.fromkeys(texts))
    if not languages:
        counts = Counter(filter(is_known, map(detector(), distinct))).most_common()
        languages = [tag for i, (tag, count) in enumerate(counts) if i == 0 or count > _FREQUENT * len(distinct)]
    return dict(zip(distinct, map(detector(languages), distinct), strict=True))
