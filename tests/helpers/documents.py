"""Reads the documents of the project: their blocks, commands, tables, headings and links."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
"""Path from the root → text."""


def blocks(document: str, kind: str) -> list[str]:
    """Return the fenced blocks of a kind, such as `sh`; `""` is that of plain text."""
    pairs = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENTS[document], flags=re.S | re.M)
    return [text for language, text in pairs if language == kind]


def prose(document: str) -> str:
    """Return a document without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", DOCUMENTS[document], flags=re.S | re.M)


def commands(document: str, program: str) -> list[list[str]]:
    """Return the commands of all `sh` blocks that begin with a program's words, without them, as lists of words."""
    lines = "".join(blocks(document, "sh")).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines if line.startswith(f"{program} ")]
    return [words[len(program.split()) :] for words in found]


def table(document: str, head: str) -> list[list[str]]:
    """Return the rows of the table whose first column has a heading, as lists of cells."""
    lines = DOCUMENTS[document].splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.startswith(f"| {head} |")]
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def names(cell: str) -> list[str]:
    """Return what stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def links(document: str) -> Iterator[tuple[str, str]]:
    """Yield path and anchor of each link and picture to a file of the project."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(path: Path) -> set[str]:
    """Return the anchors of a Markdown file's headings."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
