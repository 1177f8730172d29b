"""Lines of the training corpora: English, tab, translation, tab, the corpus that they come from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from metasearch.config.distillation import CorpusSettings
from metasearch.data.formats.text_files import lines_of
from metasearch.data.parallel.files import find
from metasearch.errors import DataError


@dataclass(frozen=True, slots=True)
class Line:
    """An English sentence, its translation, their corpus (which has the licence), and their file and line."""

    path: Path
    number: int
    language: str
    source: str
    target: str
    corpus: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path.name}:{self.number}"

    def written(self) -> str:
        """Return it as it stands in the file."""
        return f"{self.source}\t{self.target}\t{self.corpus}\n"


def read_lines(folder: Path) -> Iterator[Line]:
    """Yield all lines of the files `en-LL.tsv` of a folder, by file and line.

    Raises:
        DataError: a file is missing, packed or damaged, or a line has not three columns with text; the corpus is
            asked for because no text is used without its licence.
    """
    for source in find([folder], CorpusSettings()):
        if len(source.paths) > 1 or not source.pivot_first:
            raise DataError(f"{source.path}: expected a file such as en-de.tsv, English first")
        for number, line in enumerate(lines_of(source.path), 1):
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 3 or not all(columns):
                raise DataError(
                    f"{source.path}:{number}: expected English, translation and corpus with tabs between them,"
                    f" got '{line[:60]}'"
                )
            yield Line(source.path, number, source.language, *columns)


def write_lines(folder: Path, lines: Iterable[Line]) -> None:
    """Write lines to the files of the same names in another folder."""
    by_name: dict[str, list[str]] = {}
    for line in lines:
        by_name.setdefault(line.path.name, []).append(line.written())
    folder.mkdir(parents=True, exist_ok=True)
    for name, written in by_name.items():
        (folder / name).write_text("".join(written), encoding="utf-8")
