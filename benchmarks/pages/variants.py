"""Variants of the sets of titles, each a folder beside its set with queries of its own.

- `SET-no-titles`: pages without `<title>` and first heading, so that a title as query does not meet itself.
- `SET-joined`: four consecutive pages of a language in one file. A title asks for the file that has its page.
- `SET-half`: every second file is joined. The others have one page.

Joined pages have no titles, either.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from benchmarks.pages.pool import Query, read_queries

SIZE = 4
"""Pages of a joined file."""
NO_TITLES, JOINED, HALF = "no-titles", "joined", "half"
_TITLE = re.compile(r"<title>.*?</title>", re.DOTALL | re.IGNORECASE)
_HEADING = re.compile(r"<h([1-6])\b[^>]*>.*?</h\1>", re.DOTALL | re.IGNORECASE)
_BODY = re.compile(r"<body\b[^>]*>(.*)</body>", re.DOTALL | re.IGNORECASE)

Parts = Mapping[str, Sequence[str]]
"""Name of a file → names of its pages."""


def write_variants(output: Path, name: str, count: int) -> None:
    """Write the variants of a set, from `count` pages that are drawn as `benchmarks.pages.run` draws them."""
    queries = read_queries(output / "queries" / f"{name}.jsonl", count)
    pages = sorted({query.page for query in queries})
    joined = join(pages)
    half = {
        new: own
        for number, (part, inside) in enumerate(joined.items())
        for new, own in ([(part, inside)] if number % 2 == 0 else [(page, [page]) for page in inside])
    }
    for variant, parts in ((NO_TITLES, {page: [page] for page in pages}), (JOINED, joined), (HALF, half)):
        _write(output, name, f"{name}-{variant}", parts, queries)


def join(pages: Sequence[str]) -> dict[str, list[str]]:
    """Return names of joined files with the pages of each.

    Example:
        >>> join(["a", "b", "c", "d", "e"])
        {'part-001': ['a', 'b', 'c', 'd'], 'part-002': ['e']}
    """
    starts = range(0, len(pages), SIZE)
    return {f"part-{number:03}": [*pages[start : start + SIZE]] for number, start in enumerate(starts, 1)}


def without_title(source: str) -> str:
    """Return a page without its `<title>` and its first heading.

    Example:
        >>> without_title("<title>Files</title><h1>Files</h1><p>Move them.</p><h2>Copies</h2>")
        '<p>Move them.</p><h2>Copies</h2>'
    """
    return _HEADING.sub("", _TITLE.sub("", source, count=1), count=1)


def joined_source(sources: Iterable[str], language: str) -> str:
    """Return one page with the bodies of several."""
    bodies = "\n".join(body[1] if (body := _BODY.search(source)) else source for source in sources)
    return f'<!DOCTYPE html>\n<html lang="{language}">\n<head></head>\n<body>\n{bodies}\n</body>\n</html>\n'


def _write(output: Path, name: str, variant: str, parts: Parts, queries: Sequence[Query]) -> None:
    part_of = {page: part for part, pages in parts.items() for page in pages}
    languages = sorted({query.language for query in queries})
    for language in languages:
        (output / variant / language).mkdir(parents=True, exist_ok=True)
        for part, source in _sources(output / name / language, language, parts):
            (output / variant / language / f"{part}.html").write_text(source, encoding="utf-8")
    rows = [{"page": part_of[query.page], "language": query.language, "query": query.text} for query in queries]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (output / "queries" / f"{variant}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    click.echo(f"{variant}: {len(parts)} pages, {len(languages)} languages, {len(rows)} queries")


def _sources(folder: Path, language: str, parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield name and source of each file in a language; a part without a page in it has none."""
    for part, pages in parts.items():
        paths = [path for page in pages if (path := folder / f"{page}.html").exists()]
        sources = [without_title(path.read_text(encoding="utf-8")) for path in paths]
        if sources:
            yield part, sources[0] if len(pages) == 1 else joined_source(sources, language)
