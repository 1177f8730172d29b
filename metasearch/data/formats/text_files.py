"""Reads text files, which may be packed: lines, rows and values. Errors name file and line; dropped lines count."""

import codecs
import csv
import gzip
import io
import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from metasearch.config.languages import parse_name
from metasearch.data.formats.blank import blank, require_text
from metasearch.errors import DataError
from metasearch.io import near, require_file

PACKED = ".gz"
NOT_READ = (".zst", ".xz", ".bz2")
"""Suffixes of compressed files that cannot be read."""
_NEGOTIATED = re.compile(r"(\.html?)\.([a-z]{2}(?:[-_][a-z]{2,4})?)(?:\.utf-?8)?$", re.I)
_NO_LANGUAGE = ("br", "tt")
"""Ends of pages in Brotli and of templates of Template Toolkit, which are tags, too."""
LONGEST_ROW = 2**24
"""Bytes of a line, and characters of a cell of a CSV, at most."""

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What may stand between the columns of a CSV."""
_DAMAGE = re.compile("[\0\udc80-\udcff]")
Damage = Callable[[str, str], None]
"""Called for an unreadable line or row with its place and the error."""

log = logging.getLogger(__name__)

# The limit holds for the whole process; the default of 131,072 characters is less than an article in one cell.
csv.field_size_limit(LONGEST_ROW)


def unpacked(name: str) -> str:
    """Return a file's name as it usually is: `pairs.tsv` for `pairs.tsv.gz`, and `faq.de.html` for `faq.html.de`.

    The latter are pages for the content negotiation of a web server (MultiViews of Apache).
    """
    stem, dot, suffix = name.rpartition(".")
    name = stem if dot + suffix in (PACKED, *NOT_READ) else name
    negotiated = _NEGOTIATED.search(name)
    if negotiated and negotiated[2] not in _NO_LANGUAGE and parse_name(negotiated[2], common=True):
        return f"{name[: negotiated.start()]}.{negotiated[2]}{negotiated[1]}"
    return name


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, without its compression: `.csv` for `pairs.csv.gz`."""
    return Path(unpacked(path.name)).suffix.lower()


def require_readable(path: Path) -> None:
    """Raise `DataError` for a file in a compression that cannot be read."""
    if path.suffix in NOT_READ:
        raise DataError(f"{path}: {path.suffix} files cannot be read; decompress it, or compress it with gzip")


def refuse(place: str, reason: str) -> None:
    """Raise `DataError` for an unreadable line or row."""
    raise DataError(f"{place}: {reason}")


@contextmanager
def opened(path: Path, reached: Callable[[], str]) -> Iterator[BinaryIO]:
    """Open a file to read, unpacked where its name ends in `.gz`.

    `DataError` if it cannot be read, or is a damaged packed file; the message says what was `reached` before.
    """
    require_readable(path)
    try:
        require_file(path)
        # A buffered reader splits lines faster than the gzip file itself.
        packed = path.suffix == PACKED
        with io.BufferedReader(cast(io.RawIOBase, gzip.open(path))) if packed else path.open("rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file after {reached()}: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}{near(path)}") from None


def byte_lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines in UTF-8 with their ends, without a byte-order mark; `.gz` is decompressed.

    A file that begins with the byte-order mark of UTF-16 is decoded. `DataError` for a line over the limit, for the
    mark of UTF-32, and for damaged UTF-16.
    """
    number = 0
    with opened(path, lambda: f"line {number}") as file:
        head = cast(io.BufferedReader, file).peek(4)[:4]
        if _mark_of(head) == "UTF-16":
            yield from _decoded_lines(path, file)
            return
        _refuse_mark(path, head)
        for number, line in enumerate(iter(partial(file.readline, LONGEST_ROW + 1), b""), 1):
            if len(line) > LONGEST_ROW:
                raise DataError(f"{path}:{number}: the line has more than {LONGEST_ROW:,} bytes")
            yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _decoded_lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-16, as spreadsheets save `Unicode text`, in UTF-8."""
    number, lines = 0, io.TextIOWrapper(file, "utf-16", newline="\n")
    try:
        for number, line in enumerate(iter(partial(lines.readline, LONGEST_ROW + 1), ""), 1):
            if len(line) > LONGEST_ROW:
                raise DataError(f"{path}:{number}: the line has more than {LONGEST_ROW:,} characters")
            yield line.encode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: damaged UTF-16 after line {number}: {error.reason}") from None


def _mark_of(content: bytes) -> str:
    """Return the encoding of a byte-order mark, other than UTF-8; empty without one."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "")


def _refuse_mark(path: Path, content: bytes) -> None:
    if name := _mark_of(content):
        raise DataError(f"{path}:1: not UTF-8: byte {content[0]:#04x} begins {name}; {_convert(name)}")


def _convert(name: str) -> str:
    return f"convert the file: iconv -f {name} -t UTF-8"


def _decoded(line: bytes) -> str:
    """Return a line as text, with half a surrogate pair for each byte that is not UTF-8 (PEP 383)."""
    return line.decode(errors="surrogateescape")


def damage_of(text: str) -> str:
    """Return why a decoded text is not readable: a byte that is not UTF-8, with a likely encoding, or a NUL."""
    found = None if text.isascii() and "\0" not in text else _DAMAGE.search(text)
    if found is None:
        return ""
    if found[0] == "\0":
        return "not UTF-8 text: it has a NUL character"
    return f"not UTF-8: byte {ord(found[0]) - 0xDC00:#04x}{_likely(text.encode(errors='surrogateescape'))}"


def _likely(content: bytes) -> str:
    """Return what to do about content that is probably Western text; empty for other content."""
    others = sum(byte > 0x7F for byte in content)
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    return f", perhaps CP1252; {_convert('CP1252')}" if others <= len(content) / 4 else ""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, with its end; `DataError` if it is not UTF-8 or has a NUL."""
    for number, line in enumerate(byte_lines(path), 1):
        text = _decoded(line)
        if damage := damage_of(text):
            raise DataError(f"{path}:{number}: {damage}")
        yield number, text


def bare_lines(path: Path, damaged: Damage = refuse) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, without its end, LF or CR LF; `DataError` for an empty file.

    `damaged` is called for a line that is not UTF-8 or has a NUL, which is skipped; by default it is a `DataError`.
    """
    number = 0
    # Not `splitlines`, which also cuts at marks such as U+2028 within a sentence.
    for number, line in enumerate(byte_lines(path), 1):
        text = _decoded(line)
        if damage := damage_of(text):
            damaged(f"{path}:{number}", damage)
        else:
            yield number, text.removesuffix("\n").removesuffix("\r")
    if not number:
        raise DataError(f"{path}: the file is empty")


def lines_of(path: Path) -> list[str]:
    """Return a file's lines without their ends, LF or CR LF; `DataError` for an empty file."""
    return [line for _, line in bare_lines(path)]


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; `ValueError` if it is none, or a key is duplicated in an object.

    Python would keep the last value of a duplicate key.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        message = error.msg.removesuffix(" at")  # as in "Unterminated string starting at"
        raise ValueError(f"not JSON: {message} at {line}column {error.colno}") from None
    except RecursionError:
        raise ValueError("not JSON: it nests too deep") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key}' is duplicated")
    return made


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; `DataError` if it cannot be read or is not JSON, or a key is duplicated."""
    with opened(path, lambda: "the beginning") as file:
        content = file.read()
    _refuse_mark(path, content)
    for number, line in enumerate(content.split(b"\n"), 1):
        if damage := damage_of(_decoded(line)):
            raise DataError(f"{path}:{number}: {damage}")
    try:
        return parse_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def _csv_rows(path: Path, damaged: Damage, headed: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield first line number and cells for each non-blank row in a CSV; bytes that are not UTF-8 stay in the cells."""
    # The csv module wants lines that a lone CR ends, too; line ends within quoted cells are left to it.
    decoded = map(_decoded, byte_lines(path))
    lines = (part for line in decoded for part in (io.StringIO(line, newline="") if "\r" in line else (line,)))
    ahead: list[str] = []
    while headed and all(map(blank, ahead)) and (line := next(lines, None)) is not None:
        ahead.append(line)
    reader, first = csv.reader(chain(ahead, lines), delimiter=_separator(path, ahead[-1:]), strict=True), 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # After text behind a closing quote, the next line begins a row; after other damage that is unknown.
            (damaged if "expected after" in str(error) else refuse)(f"{path}:{first}", f"not CSV: {error}")
        else:
            yield first, row
        first = reader.line_num + 1


def _separator(path: Path, header: Sequence[str]) -> str:
    """Return what stands between the columns in a header: commas, if there are any."""
    counts = {mark: len(next(csv.reader(header, delimiter=mark), [])) for mark in _SEPARATORS}
    if counts[","] > 1 or (found := max(counts, key=counts.__getitem__)) == ",":
        return ","
    log.info("%s: columns are between %s, as in the header", path, _SEPARATORS[found])
    return found


def _tsv_rows(path: Path, damaged: Damage) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each line, split at tabs, without quotes; a blank line has none."""
    for number, line in bare_lines(path, damaged):
        yield number, [] if blank(line) else line.split("\t")


def table_rows(path: Path, damaged: Damage = refuse, headed: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield first line number and cells of each row in a CSV, or in a file with tabs; cells have LF as line ends.

    `damaged` is called for an unreadable row, which is skipped; by default it is a `DataError`. The header of a
    `headed` CSV may have semicolons, tabs or bars between columns instead of commas.
    """
    is_csv = suffix_of(path) == ".csv"
    for line, cells in _csv_rows(path, damaged, headed) if is_csv else _tsv_rows(path, damaged):
        text = "\t".join(cells)
        if damage := damage_of(text):
            damaged(f"{path}:{line}", damage)
        else:
            yield line, list(map(with_line_feeds, cells)) if "\r" in text else cells


def with_line_feeds(cell: str) -> str:
    """Return a text with line feeds as line breaks, whatever system wrote the file."""
    return cell.replace("\r\n", "\n").replace("\r", "\n")


def strip_text(text: str, place: str) -> str:
    """Return a text stripped of white space at both ends; `DataError` if it is blank, or half a surrogate pair."""
    try:
        return require_text(text).strip()
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


# Counts of lines, in files where damaged lines are dropped.

EXAMPLES = 3
"""Places that are named of each reason to leave a line out, and files that are named of those passed over."""


def some(names: Sequence[str]) -> str:
    """Return the first few names, with dots for the others."""
    return ", ".join([*names[:EXAMPLES], *["..."] * (len(names) > EXAMPLES)])


@dataclass
class Report:
    """Line counts.

    Attributes:
        dropped: reason such as `no tab` → number of lines or pairs dropped for it.
        examples: the first few places of each reason in each file, as `file:line: reason`.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """Lines that became pairs."""
        return self.read - self.dropped.total()

    def drop(self, reason: str, place: str = "") -> None:
        """Count a dropped line; remember its place, `file:line`, for the first few per reason."""
        self.dropped[reason] += 1
        if place and self.dropped[reason] <= EXAMPLES:
            self.examples.append(f"{place}: {reason}")

    def require_pairs(self, path: Path) -> None:
        """Raise `DataError` where no line of a file became a pair."""
        if not self.kept:
            why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
            raise DataError(
                f"{path}: " + (f"no line of {self.read} is a pair: {why}" if self.read else "the file is empty")
            )

    def include(self, other: "Report") -> None:
        """Add counts and places from another file."""
        self.read += other.read
        self.dropped += other.dropped
        self.examples += other.examples

    def describe(self) -> str:
        """Return the counts in words, such as `100 lines read, 97 kept; dropped: 3 no tab`."""
        dropped = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
        return f"{self.read} lines read, {self.kept} kept" + f"; dropped: {dropped}" * bool(dropped)
