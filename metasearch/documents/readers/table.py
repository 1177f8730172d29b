"""Tables with a header: CSV, with quotes, and TSV, which knows none; columns as in `metasearch.documents.rows`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from metasearch.documents.content import lines
from metasearch.documents.problems import Notes
from metasearch.documents.rows import read_row
from metasearch.documents.section import Section
from metasearch.documents.settings import Settings
from metasearch.errors import DataError, nearest
from metasearch.formats.blank import blank
from metasearch.formats.text_files import column_names, rows_of, suffix_of


def sections(path: Path, settings: Settings, notes: Notes) -> Iterator[Section]:
    """Yield the text of each row that has one; `DataError` if there is no column with the text."""
    header: list[str] = []
    for first, cells in _rows(path):
        if not cells:
            continue
        if not header:
            header = column_names(cells, path, first)
            if settings.column not in header:
                raise DataError(
                    f"{path}:{first}: the header has no column '{settings.column}' with the text."
                    f"{nearest(settings.column, filter(None, header))}"
                )
            continue
        if len(cells) != len(header):
            notes.skip_row(f"{path}:{first}: expected {len(header)} columns, got {len(cells)}")
            continue
        # A column without a name, as spreadsheets leave at the end of rows, has nothing to be read for.
        row = {name: cell or None for name, cell in zip(header, cells, strict=True) if cell or name == settings.column}
        section = read_row(row, f"{path}:{first}", settings, notes)
        if section is not None:
            line = first + sum(cell.count("\n") for cell in cells[: header.index(settings.column)])
            yield Section(section.text, line, section.language, section.title)


def _rows(path: Path) -> Iterable[tuple[int, Sequence[str]]]:
    if suffix_of(path) == ".csv":
        return rows_of(lines(path), path)
    return ((n, line.rstrip("\n").split("\t") if not blank(line) else []) for n, line in enumerate(lines(path), 1))
