"""Languages from the names of files, siblings and folders."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from metasearch.config.languages import UNKNOWN, is_listed, parse_name, primary_language

Series = Mapping[str, Set[str]]
"""Name of files in a folder without the tag at its end → the tags."""


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
    """Return the language that a folder tells: it is a tag, or ends in a dot and a tag, such as `pages.zh_TW`.

    `pages` beside `pages.zh_TW` tells that its files are in one language, which is `und`.
    """
    tag = _read_tag(name) or _read_tag(name.rpartition(".")[2])
    return tag or (UNKNOWN if name in untagged else around)


def find_language(stem: str, told: str, siblings: Series) -> str:
    """Return the language in a file's name, or its folder's name; empty if neither has one.

    The name is a tag, or ends in a dot, hyphen or underscore and a tag: `de`, `faq.de`, `README.pt-br`. Words look like
    tags, too: `git-rm` is no Romansh. So in a folder that tells a language, a name counts only if its siblings have the
    same name with other tags. A tag that can be a word, such as that of `git-rm`, then needs a sibling in the language
    of the folder.
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
