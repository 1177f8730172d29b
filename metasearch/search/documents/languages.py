"""Languages from the names of files and folders, and pages that differ only in their language."""

import re
from collections import Counter
from collections.abc import Mapping

from metasearch.config.languages import parse_name, primary_language
from metasearch.data.formats.text_files import unpacked

_PROGRAMS = ("cs", "el", "mk", "ml", "pl", "ps", "so", "sv", "ts")
"""Tags that are also the ends of programs' names: `app.ts.md` may be about TypeScript."""

_SHOWN = 3
"""Languages that a line names."""
_LEAST_DETECTED = 10
"""Passages of a language below which detection is not compared with what documents state."""


def find_folder_language(name: str, around: str) -> str:
    """Return the language in a folder's name, a tag or a tag after a dot (`pages.zh_TW`), else that `around` it."""
    return _read_tag(name) or _read_tag(name.rpartition(".")[2]) or around


def find_language(stem: str, folder: str) -> str:
    """Return the language in a file's name, else its folder's.

    The name is a tag, or ends in a dot, hyphen or underscore and a tag: `de`, `faq.de`, `README_pt-br`. Words look like
    tags, too: `git-rm` is not Romansh. So in a folder with a language, only a tag after a dot counts that no program's
    name ends in, and a tag with a script or region.
    """
    for start in (0, *(mark.end() for mark in re.finditer("[._-]", stem))):
        if tag := _read_tag(stem[start:]):
            after_dot = stem[max(start - 1, 0)] == "." and tag not in _PROGRAMS
            return tag if not folder or "-" in tag or after_dot else folder
    return folder


def path_without_language(file: str) -> str:
    """Return what the paths of a page and its translations share.

    Example:
        >>> path_without_language("help/de/keys.html"), path_without_language("help/el/keys.html")
        ('help/*/keys.html', 'help/*/keys.html')
        >>> path_without_language("keys.de.md"), path_without_language("keys.md")
        ('keys.md', 'keys.md')
    """
    *folders, name = unpacked(file).split("/")
    stem, _, suffix = name.rpartition(".")
    starts = (0, *(mark.end() for mark in re.finditer("[._-]", stem)))
    cut = next((start for start in starts if _read_tag(stem[start:])), len(stem) + 1)
    bare = ["*" if find_folder_language(folder, "") else folder for folder in folders]
    return "/".join([*bare, f"{stem[: max(cut - 1, 0)]}.{suffix}"])


def are_translated(languages: Mapping[str, str]) -> bool:
    """Return whether at least half of some pages, by path with their languages, exist in another language, too."""
    found: dict[str, set[str]] = {}
    for file, language in languages.items():
        found.setdefault(path_without_language(file), set()).add(language)
    return 2 * sum(len(found[path_without_language(file)]) > 1 for file in languages) >= max(len(languages), 1)


def translations(languages: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return groups of pages with the same path but for the language, each in another language.

    Args:
        languages: path of a page → its language.
    """
    found: dict[str, list[str]] = {}
    for file in languages:
        found.setdefault(path_without_language(file), []).append(file)
    apart = (own for own in found.values() if len({languages[file] for file in own}) == len(own) > 1)
    return [tuple(sorted(own)) for own in apart]


def _read_tag(text: str) -> str:
    return parse_name(text, common=True)


def disagreements(detected: Mapping[tuple[str, str], int], always: bool = False) -> list[str]:
    """Return a line for each language in which detection sees another one in a third of the passages or more.

    Args:
        detected: stated language, detected language → number of passages.
        always: whether detection decides; then each language with any such passage has a line.
    """
    lines = []
    for stated in sorted({stated for stated, _ in detected}):
        counts = Counter({found: count for (tag, found), count in detected.items() if tag == stated})
        total = counts.total()
        del counts[primary_language(stated)]
        others = ", ".join(f"{tag} {count:,}" for tag, count in counts.most_common(_SHOWN))
        says = f"{total:,} passages have the language {stated}, but {counts.total():,} of them look like {others}"
        if always and counts:
            lines.append(f"{says}; detection decides")
        elif not always and total >= _LEAST_DETECTED and 3 * counts.total() >= total:
            lines.append(
                f"{says}; if it is right, use --detect always,{','.join([primary_language(stated), *counts][:4])}"
            )
    return lines
