"""Languages of documents by evidence: names and tags propose, and the texts of some documents decide.

A folder or an ending such as `-de` proposes a language for all documents with it. Detection looks at their texts,
unless they state the same language. So a department, a country or a programming language is no language, and the
`lang` of a template does not count. A page with the text of a page in another language is a copy of it.
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from html import unescape
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from metasearch.config.languages import is_known, normalise_tag, primary_language
from metasearch.data.formats.text_files import opened, suffix_of, unpacked
from metasearch.data.languages import detectable, detector
from metasearch.data.records import grouped
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.languages import (
    find_country_language,
    find_folder_language,
    group_pages,
    is_word,
    names_at_root,
    path_without_language,
    written_tag,
)
from metasearch.search.documents.passage import Notes

if TYPE_CHECKING:
    from metasearch.search.documents.read import Source

log = logging.getLogger(__name__)

_FILES, _HEAD, _OFFICE_FILES = 20, 2**16, 3
"""Documents of a proposal that are read, bytes of each, and documents that have to be read as a whole."""
_LEAST, _LONGEST = 100, 10_000
"""Letters below which texts decide nothing, and characters that detection reads, an equal part of each document."""
_KEPT = 1000
"""Documents whose beginnings stay in memory, of 64 KiB at most."""
_MOST, _COPIED, _SHORTEST = 0.75, 0.8, 30
"""Share of texts that decides; share of a page's text that its copy has; letters of a page that may be a copy."""
_KIN = (
    "bs hr sh sr",
    "da nb nn no sv",
    "id ms",
    "an ast ca es gl oc pt",
    "cs sk",
    "be bg mk ru uk",
    "af nl",
    "fa ps ur",
)
"""Languages that detection takes for each other."""
_UNSHOWN = re.compile(r"<(head|script|style|nav|header|footer|pre|template|svg)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
_BLOCK = re.compile(r"</?(?:p|div|li|h[1-6]|td|br|tr|section)\b[^>]*>", re.I)
_MARKS = re.compile(r"\A---\n.*?\n---\n|^(```|~~~).*?^\1|`[^`\n]*`|\]\([^)]*\)|<[^>]*>|\"\w+\":", re.S | re.M)
_STATED = re.compile(
    r"<(?:html|body)\b[^>]*?\s(?:xml:)?lang\s*=\s*[\"']?([\w-]+)|\A---\n(?:[^\n]+\n)*?lang(?:uage)?:\s*[\"']?([\w-]+)",
    re.I,
)
_OFFICE, _HTML = (".pdf", ".docx"), (".html", ".htm")
_DOUBTED = ("en", "br", "ch", "ee", "kr", "se", "si", "tw")
"""Tags that pages state although they are not in the language: many templates state English, and the others are mostly
codes of countries (Brazil, Switzerland, Estonia, Korea, Sweden, Slovenia, Taiwan)."""
_ENGLISH = r"(?i)\b(?:a|an|and|are|as|at|be|by|can|for|from|if|in|is|it|not|of|on|or|that|the|this|to|with|you)\b"
"""Frequent words."""
_ENGLISH_SHARE = 0.1
"""Share of frequent words in an English text, at least."""


def decide(sources: Sequence["Source"], settings: Settings) -> list["Source"]:
    """Return documents with the languages that their texts confirm; a line says each change and the reason."""
    found = _Evidence(sources, primary_language(settings.language or ""))
    if settings.names:
        found.decide_names()
        found.decide_root()
        found.decide_copies()
    found.decide_template()
    return list(found.sources.values())


Place = tuple[str, str, bool]
"""Language in a name, the name in messages, and whether it is a word."""


class _Evidence:
    def __init__(self, sources: Sequence["Source"], language: str) -> None:
        self.sources = {each.file: each for each in sources}
        self._language = language
        self._content = lru_cache(_KEPT)(lambda file: _read_beginning(self.sources[file].path))
        self._text = lru_cache(_KEPT)(lambda file: _text_of(self._content(file), self.sources[file].path))
        self._stated = cache(lambda file: normalise_tag(_stated_in(self._content(file))))

    def decide_names(self) -> None:
        """Keep the languages in names that texts confirm, and give folders of countries a language."""
        places = grouped(self.sources, lambda file: _place(self.sources[file]))
        found = {place: self._detect(files, place[0]) for place, files in places.items() if place[1]}
        alike = {place: _are_alike(place[0], seen) for place, seen in found.items()}
        accepted = {primary_language(place[0]) for place, same in alike.items() if same and not place[2]}
        accepted |= self._decide_words(places, found, alike, accepted)
        others = Counter(seen for place, seen in found.items() if not alike[place])
        usual = {"en", self._language, *(tag for tag, count in others.items() if count > 1)} - accepted
        known = (each for each in self.sources.values() if primary_language(each.language) in accepted)
        names = {path_without_language(each.file) for each in known}
        countries = Counter(find_country_language(folder.rstrip("/")) for tag, folder, _ in found if not tag)
        for place, seen in found.items():
            tag, folder, _ = place
            files, country = places[place], find_country_language(folder.rstrip("/"))
            if alike[place]:
                self._correct_tags(files, tag)
                continue
            likely = {*usual, *accepted, primary_language(country)}
            translated = not _lacks(files, names)
            if not is_known(seen) or (translated and primary_language(country) != seen):
                continue
            if tag and not (primary_language(tag) in detectable() or seen in likely or _other_script(tag, seen)):
                continue
            # Countries of one language may have offices there: their pages are no translations.
            offices = countries[country] > 1 or (seen in usual and not accepted)
            if not tag and (primary_language(country) != seen or offices):
                continue
            right = country if primary_language(country) == seen else "" if seen in usual else seen
            self._change(files, right, right or seen)
            says = f"the language {right}" if right else "no language"
            but = f", not {tag}" if tag else ""
            log.warning("'%s' is %s: %s look like %s%s", folder, says, _some(files), seen, but)

    def _decide_words(
        self, places: Mapping[Place, Sequence[str]], found: dict[Place, str], alike: Mapping[Place, bool],
        accepted: Set[str],
    ) -> set[str]:  # fmt: skip
        """Return the languages of words that texts confirm; documents of other words have none, and are not `found`.

        A word for English needs another language, too: `c/` has programs, and `eng/` is about engineers.
        """
        words = {place for place in found if place[2]}
        own = [each for each in self.sources.values() if primary_language(each.language) in accepted]
        names = {path_without_language(each.file) for each in own if not _place(each)[2]}
        # Where pages are too short for detection, translations by the same names tell as much.
        right = {place for place in words if alike[place] or not (found[place] or _lacks(places[place], names))}
        languages = {primary_language(tag) for tag, *_ in right} | accepted
        if languages == {"en"} and not self._is_translated_in_part(places):
            right = set()
        for place in words - right:
            del found[place]
            self.sources |= {file: replace(self.sources[file], language="") for file in places[place]}
            log.info("'%s' is taken for no language: %s", place[1], _some(places[place]))
        return {primary_language(place[0]) for place in right}

    def _is_translated_in_part(self, places: Mapping[Place, Sequence[str]]) -> bool:
        """Return whether folders in which most pages are copies have two documents in their own languages."""
        other = [
            (tag, files)
            for (tag, _, word), files in places.items()
            if primary_language(tag) not in ("", "en") and not word
        ]
        own = (_are_alike(tag, self._detect([file], tag)) for tag, files in other for file in self._sample(files))
        return len([*islice(filter(None, own), 2)]) > 1

    def decide_root(self) -> None:
        """Give pages without a language the language of their texts where other pages are their translations."""
        known: dict[str, set[str]] = {}
        for file, each in self.sources.items():
            if each.language:
                for name in names_at_root(path_without_language(file, each.language)):
                    known.setdefault(name, set()).add(each.language)
        files = [file for file, each in self.sources.items() if not each.language and unpacked(file) in known]
        seen = self._detect(files) if files and not self._language else ""
        if is_known(seen) and (files := [file for file in files if seen not in known[unpacked(file)]]):
            self._change(files, seen)
            log.info("%s have translations, and look like %s", _some(files), seen)

    def decide_copies(self) -> None:
        """Give a copy the language of its text."""
        languages = {file: each.language for file, each in self.sources.items()}
        groups = [own for own in grouped(languages, group_pages(languages).get).values() if len(own) > 1]
        if not any(map(self._copies, sorted(groups, key=_hash)[:_FILES])):
            return
        found: dict[str, dict[str, list[str]]] = {}
        changed = set[str]()
        for own in groups:
            for copies in self._copies(own):
                tags = {"en", self._language, *(primary_language(languages[file]) for file in own)}
                seen = detector(sorted(tags & detectable()))(self._text(copies[0]))
                other = seen if is_known(seen) and all(map(languages.get, own)) else ""
                same = (languages[file] for file in own if primary_language(languages[file]) == seen)
                right = min(same, key=len, default=other)  # `en` before `en-GB`
                for file in copies:
                    # British English is no copy of American English.
                    if primary_language(languages[file]) not in ("", primary_language(right)):
                        found.setdefault(right, {}).setdefault(languages[file], []).append(file)
        for right, copies_by_tag in found.items():
            files = [*chain.from_iterable(copies_by_tag.values())]
            self._change(files, right)
            changed.update(files)
            log.warning(
                "%s of %s have the same text as pages in another language: they look like %s, and are no translations",
                _some(files), ", ".join(sorted(copies_by_tag)), right or "pages without a language",
            )  # fmt: skip
        for tag in sorted({*chain.from_iterable(found.values())}):
            left = [file for file, each in self.sources.items() if each.language == tag and file not in changed]
            left = [file for file in left if not _are_alike(self._stated(file) or tag, tag)]
            if left := [file for file in left if _are_alike(tag, self._detect([file], tag))]:
                self._correct_tags(left, tag)

    def decide_template(self) -> None:
        """Ignore the `lang` of pages whose texts are not in English, or not in a rare language, although it says so."""
        pages = (file for file, each in self.sources.items() if each.format.name == "html" and not each.language)
        for files in grouped(pages, lambda file: file.rpartition("/")[0]).values():
            sample = self._sample(files)
            stated = Counter(self._stated(file) for file in sample).most_common(1)[0][0]
            tag = primary_language(stated)
            country = "" if tag == "en" else find_country_language(tag)
            seen = self._detect(files) if tag in _DOUBTED else ""
            if is_known(seen) and seen != tag and primary_language(country) in ("", seen):
                seen = country or seen
                self._change(files, seen)
                log.warning("%s state lang=%s, but look like %s: their texts decide", _some(files), stated, seen)

    def _correct_tags(self, files: Sequence[str], tag: str) -> None:
        """Ignore the `lang` of documents whose names and texts tell the same other language."""
        stated = Counter(self._stated(file) for file in self._sample(files))
        wrong = [each for each, count in stated.items() if each and not _are_alike(each, primary_language(tag))]
        if wrong and 2 * sum(stated[each] for each in wrong) >= stated.total():
            self._change(files, tag, tag, wrong)
            log.warning("%s state lang=%s, but look like %s, as their names say", _some(files), wrong[0], tag)

    def _change(self, files: Iterable[str], language: str, right: str = "", wrong: Iterable[str] = ()) -> None:
        """Set the language of documents; `right` replaces what else they state, or only the `wrong` tags."""
        for file in files:
            each = self.sources[file]
            stated = {*wrong} or {each.language, self._stated(file)} - {"", right or language}
            replaced = {**each.replaced, **dict.fromkeys(stated, right or language)}
            self.sources[file] = replace(each, language=language, replaced=replaced)

    def _sample(self, files: Sequence[str]) -> list[str]:
        office = [file for file in files if self.sources[file].format.name == "office"]
        return sorted({*files} - {*sorted(office, key=_hash)[_OFFICE_FILES:]}, key=_hash)[:_FILES]

    def _detect(self, files: Sequence[str], tag: str = "") -> str:
        """Return the language of the texts of some documents; empty if they are short or differ.

        It is the one that most state, if their names have the same `tag` or none and it is not doubted. English needs
        texts with its frequent words.
        """
        sample = self._sample(files)
        [(stated, count)] = Counter(primary_language(self._stated(file)) for file in sample).most_common(1)
        agreed = stated and stated == primary_language(tag or stated) and count >= _MOST * len(sample)
        if agreed and stated not in _DOUBTED:
            return stated
        texts = [_middle(self._text(file), _LONGEST // len(sample)) for file in sample]
        if agreed and stated == "en" and _are_english(texts):
            return stated
        pooled = "\n".join(dict.fromkeys(line for text in texts for line in text.splitlines()))
        if sum(map(str.isalpha, pooled)) < _LEAST:
            return ""
        detect = detector()
        seen = detect(pooled)
        own = [_are_alike(detect(text), seen) for text in texts if text]
        return seen if sum(own) >= _MOST * len(own) else ""

    def _copies(self, files: Sequence[str]) -> list[list[str]]:
        """Return pages that have nearly the same text in several languages, together."""
        letters = {file: {line: _letters(line) for line in self._text(file).splitlines()} for file in files}
        sizes = {file: sum(own.values()) for file, own in letters.items()}

        def alike(one: str, other: str) -> bool:
            least = max(_SHORTEST, _COPIED * sizes[one], _COPIED * sizes[other])
            if min(sizes[one], sizes[other]) < least:
                return False
            return sum(letters[one][line] for line in letters[one].keys() & letters[other].keys()) >= least

        found: list[list[str]] = []
        for file in files:
            if near := next((own for own in found if any(alike(file, other) for other in own)), None):
                near.append(file)
            else:
                found.append([file])
        return [own for own in found if len({self.sources[file].language for file in own}) > 1]


def _lacks(files: Sequence[str], names: Collection[str]) -> bool:
    """Return whether most files, without their languages, have none of the names."""
    return 2 * sum(path_without_language(file) in names for file in files) < len(files)


def _are_english(texts: Iterable[str]) -> bool:
    text = "\n".join(texts)
    return len(re.findall(_ENGLISH, text)) >= _ENGLISH_SHARE * len(text.split())


def _letters(line: str) -> int:
    return sum(map(str.isalpha, line))


def _middle(text: str, size: int) -> str:
    """Return the middle of a text: menus stand at its ends."""
    start = max(0, len(text) - size) // 2
    return text[start : start + size]


def _place(source: "Source") -> Place:
    """Return the language in a document's name or folders, and the name; a folder of a country has no language."""
    *folders, name = source.file.split("/")
    for folder in reversed(folders):
        if source.language and find_folder_language(folder, "") == source.language:
            return source.language, f"{folder}/", is_word(folder.removesuffix(".html"))
        if not source.language and find_country_language(folder) and not find_folder_language(folder, ""):
            return "", f"{folder}/", False
    stem = unpacked(name).rpartition(".")[0]
    return source.language, source.language and f"name ending in {written_tag(stem)}", is_word(stem)


def _are_alike(tag: str, seen: str) -> bool:
    tag, seen = primary_language(tag), primary_language(seen)
    return tag == seen or any({tag, seen} <= {*kin.split()} for kin in _KIN)


def _other_script(tag: str, seen: str) -> bool:
    from langcodes import Language

    one, other = (str(Language.get(each).maximize().script)[:3] for each in (tag, seen))
    return one != other


def _some(files: Sequence[str]) -> str:
    return f"{len(files):,} documents ({files[0]})"


def _hash(files: str | Sequence[str]) -> bytes:
    return sha256(str(files).encode(errors="surrogateescape")).digest()


def _read_beginning(path: Path) -> str:
    """Return the beginning of a document, or all text of an office document; empty if it cannot be read."""
    try:
        if suffix_of(path) in _OFFICE:
            reader = import_module("metasearch.search.documents.readers.office")
            return "\n".join(each.text for each in reader.sections(path, Settings(), Notes()))
        if suffix_of(path) in (".parquet", ".arrow", ".feather"):
            return ""
        with opened(path, lambda: "the beginning") as file:
            content = file.read(_HEAD)
    except (DataError, OSError):
        return ""
    return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "ignore")


def _stated_in(content: str) -> str:
    return next(filter(None, ((found := _STATED.search(content)) and found.groups()) or ()), "")


def _text_of(content: str, path: Path) -> str:
    if suffix_of(path) in _HTML:
        content = unescape(_MARKS.sub(" ", _BLOCK.sub("\n", _UNSHOWN.sub(" ", content))))
    elif suffix_of(path) not in _OFFICE:
        content = _MARKS.sub(" ", content.replace("\r\n", "\n"))
    lines = (" ".join(line.split()) for line in content.splitlines())
    return "\n".join(filter(None, lines))
