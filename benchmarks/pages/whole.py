"""Whole manuals as folders of their web pages, `whole/SET/LANGUAGE/PAGE.html`, as a site has them.

A page is a chapter, or a page of GNOME's help. `questions/SET.jsonl` asks for these pages.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from benchmarks.pages.page import ENGLISH

FOLDER = "whole"
GUIDE = ("de", "es", "it", "ja", "ru")
"""Languages of the guide for new maintainers, besides English."""
PACKAGES = ("maint-guide", *(f"maint-guide-{tag}" for tag in GUIDE))
_FAQ = (ENGLISH, "de", "fr", "ja", "ru")
_REFERENCE = (ENGLISH, "de", "es", "fr", "ja")
_DEVELOPERS = (ENGLISH, "de", "fr", "it", "ja", "ru")
_HELP = (ENGLISH, "de", "es", "fr", "ru")
_NO_PAGES = ("index", "search", "genindex", "developers-reference")
"""Tables of contents, searches, and one file with the whole manual."""

Files = Mapping[str, Mapping[str, Path]]
"""Language → name of the page → its file."""


def write_manuals(root: Path, output: Path) -> None:
    """Write all manuals.

    Args:
        root: folder of unpacked packages.
        output: folder with the set `gnome60`, whose pages are a manual here, too.
    """
    for name, found in find_manuals(root, output).items():
        for language, files in found.items():
            folder = output / FOLDER / name / language
            folder.mkdir(parents=True, exist_ok=True)
            for page, path in files.items():
                shutil.copyfile(path, folder / f"{page}.html")
        click.echo(f"{FOLDER}/{name}: {sum(map(len, found.values()))} documents, {len(found)} languages")


def find_manuals(root: Path, output: Path) -> dict[str, Files]:
    """Return the files of each manual."""
    share = root / "usr/share"
    faq, developers = share / "doc/debian/FAQ", share / "developers-reference"

    def guide(tag: str) -> Path:
        return share / "doc" / ("maint-guide" if tag == ENGLISH else f"maint-guide-{tag}") / "html"

    return {
        "debian-faq": _each(_FAQ, lambda tag: _named(faq if tag == ENGLISH else faq / tag, tag)),
        "debian-reference": _each(_REFERENCE, lambda tag: _named(share / "debian-reference", tag)),
        "developers-reference": _each(
            _DEVELOPERS, lambda tag: _pages(developers if tag == ENGLISH else developers / tag, "*.html")
        ),
        "maint-guide": _each((ENGLISH, *GUIDE), lambda tag: _named(guide(tag), tag)),
        "gnome-help": _each(_HELP, lambda tag: _pages(output / "gnome60" / tag, "*.html")),
    }


def _each(languages: tuple[str, ...], find: Callable[[str], dict[str, Path]]) -> Files:
    return {tag: find(tag) for tag in languages}


def _named(folder: Path, tag: str) -> dict[str, Path]:
    """Return the pages of a folder in a language that their names end in."""
    return _pages(folder, f"*.{tag}.html")


def _pages(folder: Path, pattern: str) -> dict[str, Path]:
    found = {path.name.partition(".")[0]: path for path in sorted(folder.glob(pattern))}
    return {name: path for name, path in found.items() if name not in _NO_PAGES}
