"""Languages from the names of files and folders, and pages that differ only in their language."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from metasearch.config.languages import parse_name, parse_tag, primary_language
from metasearch.data.formats.text_files import unpacked
from metasearch.data.records import grouped

_PROGRAMS = ("cs", "el", "mk", "ml", "pl", "ps", "so", "sv", "ts")
"""Tags that are also the ends of programs' names: `app.ts.md` may be about TypeScript."""

_WORDS = ("to",)
"""Tags that are words at the end of names: `how-to`."""

_MODIFIERS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}
"""Modifier of a locale in POSIX → script."""
_CODESET = re.compile(r"\.(utf-?8|iso-?8859-?\d+|koi8-?[ru]|euc-?[a-z]{2}|big5|gb[k\d]+)$", re.I)
"""Encoding in the name of a locale in POSIX: `ja_JP.UTF-8`."""
_PAGES = ".html"
"""End of a folder's name in manuals of Debian: `guide.de.html`."""
_DOCUSAURUS = re.compile(r"(?<![^/])i18n/([^/]+)/docusaurus-plugin-content-(docs|blog|pages)/(?:current/)?")
"""Folder of translations of Docusaurus; the pages of the default language are in `docs/`."""
_OTHER_CODES = {"uk": "gb"}
"""Code that is used for a country → the country's own."""
_ENGLISH = ("C", "c")
"""Folders of the locale C, in which GNOME's manuals are in English."""
_COUNTRIES = ("cn", "cz", "dk", "gr", "jp", "kr", "tw", "ua", "vn")
"""Countries that the ends of names mean, as in `README_CN`."""
_NAMES_BY_TAG = {
    "ar": "arabic ara", "bg": "bulgarian", "ca": "catalan", "cs": "czech ces cze", "da": "danish dansk",
    "de": "german deutsch deu ger", "el": "greek", "en": "english eng", "es": "spanish espanol español spa",
    "fa": "persian farsi", "fi": "finnish suomi", "fr": "french francais français fra fre", "he": "hebrew",
    "hi": "hindi", "hr": "croatian", "hu": "hungarian magyar", "id": "indonesian", "it": "italian italiano ita",
    "ja": "japanese jpn 日本語", "ko": "korean kor 한국어", "nl": "dutch nederlands nld", "no": "norwegian norsk",
    "pl": "polish polski pol", "pt": "portuguese portugues português por", "pt-BR": "brazilian", "ro": "romanian",
    "ru": "russian rus русский", "sk": "slovak", "sl": "slovenian", "sr": "serbian", "sv": "swedish svenska swe",
    "th": "thai", "tr": "turkish tur", "uk": "ukrainian", "vi": "vietnamese", "zh": "chinese zho chi 中文",
}  # fmt: skip
_OTHER_NAMES = {name: tag for tag, names in _NAMES_BY_TAG.items() for name in names.split()}
"""Name of a language, or its code of three letters, as folders and files have it → tag."""
_AROUND = re.compile(r"(?<![^/])(?:i18n|l10n|intl|lang|languages?|locales?|translations?)/(?=\*/|$)")
"""Folder around the translations of pages that are beside it."""
_SAME = {"mdx": "md", "markdown": "md", "htm": "html"}
"""End of a file's name → end of others in its format, which a translation may have."""
_NUMBERS = re.compile(r"(^|/)\d+[-_. ]+(?=[^/.])")
"""Number before the name of a file or folder, which orders a menu."""

_SHOWN = 3
"""Languages that a line names."""
_LEAST_DETECTED = 10
"""Passages of a language below which detection is not compared with what documents state."""


def find_folder_language(name: str, around: str) -> str:
    """Return the language in a folder's name, a tag or a tag at its end (`pages.zh_TW`), else the one `around` it."""
    name = name.removesuffix(_PAGES)
    return "en" if name in _ENGLISH and not around else _read_tag(name) or find_language(name, around)


def find_language(stem: str, folder: str) -> str:
    """Return the language in a file's name, else its folder's.

    The name is a tag, or ends in a dot, hyphen or underscore and a tag: `de`, `faq.de`, `README_pt-br`. Words look like
    tags, too: `git-rm` is not Romansh. So in a folder with a language, only a tag after a dot counts that no program's
    name ends in, and a tag with a script or region.
    """
    return _own_tag(stem, folder) or folder


def _own_tag(stem: str, folder: str) -> str:
    tag, start = _find_tag(stem, words=not folder)
    after_dot = stem[max(start - 1, 0) :][:1] == "." and tag not in _PROGRAMS
    return tag if not folder or "-" in tag or after_dot else ""


def find_path_language(file: str) -> str:
    """Return the language in a file's name or its folders."""
    folders, _, name = unpacked(file).rpartition("/")
    return find_language(name.rpartition(".")[0], _folders_without_language(folders, None)[1])


def is_word(name: str) -> bool:
    """Return whether a name tells a language by a word, such as `guide_german`, by capitals, or by a country."""
    return name in _ENGLISH or _find_tag(name)[0] != _find_tag(name, words=False)[0]


def written_tag(name: str) -> str:
    """Return the end of a name that tells its language: `.de` of `faq.de`."""
    return name[max(_find_tag(name)[1] - 1, 0) :]


def _find_tag(stem: str, words: bool = True) -> tuple[str, int]:
    for start in (0, *(mark.end() for mark in re.finditer("[._-]", stem))):
        end = stem[start:]
        tag = (_read_word(end, start > 0) if words else "") or _read_tag(end)
        if tag and not (start and tag in _WORDS):
            return tag, start
    return "", 0


def _read_word(text: str, is_end: bool) -> str:
    """Return the tag that a word, a country or capitals mean."""
    if text.lower() in _COUNTRIES and (is_end or text.isupper()):
        return find_country_language(text)
    return _OTHER_NAMES.get(text.lower()) or (_read_tag(text.lower()) if len(text) == 2 and text.isupper() else "")


def path_without_language(file: str, language: str | None = None) -> str:
    """Return what the paths of a page and its translations share.

    Args:
        file: path of the page.
        language: only names of this language are replaced; None replaces names of any language.

    Example:
        >>> path_without_language("help/de/keys.html"), path_without_language("help/el/keys.html")
        ('help/*/keys.html', 'help/*/keys.html')
        >>> path_without_language("keys.de.md"), path_without_language("keys.md")
        ('keys.md', 'keys.md')
        >>> path_without_language("de/hr/keys-id.md", "de")
        '*/hr/keys-id.md'
    """
    folders, slash, name = unpacked(file).rpartition("/")
    stem, _, suffix = name.rpartition(".")
    bare, inside = _folders_without_language(folders, language)
    own = find_language(stem, inside)
    if own != inside and means_language("", own, language):
        stem = stem[: max(_find_tag(stem, words=not inside)[1] - 1, 0)]
        slash += "*/" * bool(_AROUND.search(bare + slash))
    return f"{bare}{slash}{stem}.{suffix}"


@lru_cache(4096)
def _folders_without_language(folders: str, language: str | None) -> tuple[str, str]:
    """Return folders with a star for each language, and the language of the innermost one."""
    inside, bare = "", []
    for folder in folders.split("/"):
        name = folder.removesuffix(_PAGES)
        tag = "en" if name in _ENGLISH and not inside else _read_tag(name) or _own_tag(name, inside)
        means = bool(tag) if language is None else means_language(name, tag, language)
        if means and (stem := name[: max(_find_tag(name, words=not inside)[1] - 1, 0)]):
            bare.append(stem + folder[len(name) :])
        inside = tag if means else inside
        bare.append("*" if means else folder)
    return "/".join(bare), inside


def means_language(folder: str, tag: str, language: str | None) -> bool:
    """Return whether a tag, or a folder named by the code of a country, means a language; None is any language."""
    if not language:
        return language is None
    return primary_language(language) in (primary_language(tag), primary_language(find_country_language(folder)))


@cache
def find_country_language(folder: str) -> str:
    """Return the likeliest language of a country with a code of two letters; empty for other names.

    Example:
        >>> find_country_language("kr"), find_country_language("tw"), find_country_language("guide")
        ('ko', 'zh-Hant', '')
    """
    folder = folder.lower() if folder.isupper() else folder
    folder = _OTHER_CODES.get(folder, folder)
    if not re.fullmatch("[a-z]{2}", folder) or not parse_name(f"en-{folder.upper()}"):
        return ""
    from langcodes import Language

    found = Language.get(f"und-{folder}").maximize()
    return "zh-Hant" if found.script == "Hant" else str(found.language)


def group_pages(
    languages: Mapping[str, str], stored: Mapping[str, str] | None = None, by: str | None = None
) -> dict[str, str]:
    """Return the name of each page that it shares with its translations.

    Translations have the same path but for the names of their own languages. Pages in the default language may be at
    the root of the others, and other numbers may stand before names. The pages of a name have different languages.

    Args:
        languages: path of a page → its language.
        stored: path of a page → what its head or front matter says: `alternates ...` or `slug ...`.
        by: `path` and `hreflang` use these alone, and `none` nothing.
    """
    paths = {file: path_without_language(_docusaurus(file, language), language) for file, language in languages.items()}
    if by in ("none", "hreflang"):
        paths = {file: file for file in languages}
    else:
        starred = {name: each for each in paths.values() if "*/" in each for name in names_at_root(each)}
        _join(paths, languages, starred.get)
        names = {*paths.values()}

        def find_other_format(name: str) -> str | None:
            stem, _, end = name.rpartition(".")
            other = f"{stem}.{_SAME.get(end, end)}"
            return other if other in names else starred.get(other)

        _join(paths, languages, find_other_format)
    for start in ("slug ",) * (by is None) + ("alternates ",) * (by in (None, "hreflang")):
        said = {file: each for file, each in (stored or {}).items() if each.startswith(start) and file in paths}
        if start == "slug ":
            _join_alone(paths, languages, said)
        else:
            translated = _translated(said, languages)
            paths |= {file: name for file, name in said.items() if name in translated}
    if by in (None, "path"):
        _join_alone(
            paths, languages, {file: _NUMBERS.sub(r"\1", names_at_root(name)[0]) for file, name in paths.items()}
        )
    return paths


def names_at_root(name: str) -> tuple[str, str]:
    """Return what a page is named where the default language has no folder, in or beside the folder of translations.

    Example:
        >>> names_at_root("content/translations/*/intro.md")
        ('content/translations/intro.md', 'content/intro.md')
    """
    return name.replace("*/", ""), _AROUND.sub("", name).replace("*/", "")


def _translated(names: Mapping[str, str], languages: Mapping[str, str]) -> set[str]:
    """Return names of several pages, with at most two in a language on average.

    All pages of a site may name the same addresses, such as its home pages: they are no translations.
    """
    found = grouped(names, names.__getitem__).items()
    known = {name: {primary_language(languages[file]) or file for file in own} for name, own in found}
    return {name for name, own in found if 1 < len(own) <= 2 * len(known[name])}


def _docusaurus(file: str, language: str) -> str:
    return _DOCUSAURUS.sub(lambda match: f"{match[1]}/{match[2]}/", file) if language else file


def _join(paths: dict[str, str], languages: Mapping[str, str], find: Callable[[str], str | None]) -> None:
    """Give pages the name of a group that is found by their own, unless it has a page in their language."""
    used = {(paths[file], language) for file, language in languages.items()}
    for file, name in paths.items():
        group, language = find(name), languages[file]
        if group and group != name and (group, language) not in used:
            paths[file] = group
            used.add((group, language))


def _join_alone(paths: dict[str, str], languages: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Give pages without translations one of their names if they share another name, and have different languages."""
    counts = Counter(paths.values())
    alone = [file for file in names if counts[paths[file]] == 1]
    for files in grouped(alone, names.__getitem__).values():
        if len(files) > 1 and len({primary_language(languages[file]) for file in files}) == len(files):
            paths |= dict.fromkeys(files, paths[min(files)])


def are_translated(languages: Mapping[str, str], groups: Mapping[str, str] | None = None) -> bool:
    """Return whether at least half of some pages, by path with their languages, exist in another language, too."""
    found = grouped(languages, (groups or group_pages(languages)).__getitem__).values()
    translated = sum(len(own) for own in found if len({languages[file] for file in own}) > 1)
    return 2 * translated >= max(len(languages), 1)


def translations(languages: Mapping[str, str], groups: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
    """Return groups of pages with the same path but for the language, each in another language.

    Args:
        languages: path of a page → its language.
        groups: path of a page → what it shares with its translations; by default by its path.
    """
    found = grouped(languages, (groups or group_pages(languages)).__getitem__).values()
    return [tuple(sorted(own)) for own in found if len({languages[file] for file in own}) == len(own) > 1]


def _read_tag(text: str) -> str:
    """Return the tag that a name is, also as in `sr@latin`, `ca@valencia` and `ja_JP.UTF-8`."""
    before, _, modifier = text.partition("@")
    before = _CODESET.sub("", before)
    tag = parse_name(before, common=True)
    if not modifier or not tag:
        return "" if modifier else tag
    subtag = _MODIFIERS.get(modifier.lower(), modifier)
    try:
        return parse_tag(f"{tag}-{subtag}")
    except ValueError:
        return ""


def disagreements(detected: Mapping[tuple[str, str], int], always: bool = False) -> list[str]:
    """Return a line for each language in which detection sees another one in a third of the passages or more.

    `detected` is stated and detected language → passages. If detection decides `always`, one passage is enough.
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
