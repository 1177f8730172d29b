"""A table as Markdown, LaTeX or CSV.

Markdown and LaTeX show what a reader sees: values times the table's scale, the best bold, the second in italics. CSV
holds the values as they were measured, in full precision.
"""

import csv as _csv
import io
import re
from collections.abc import Callable, Mapping

from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.runs.markdown import markdown as markdown_table

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~&$])")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]<>|#~&$])")
_BARS = re.compile(r"(?<!\\)\|")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_LATEX = {
    **{character: f"\\{character}" for character in "{}$&#_%"},
    # A row may begin with these, and `\\` before it would take them for its own argument.
    **{character: f"{{{character}}}" for character in "[]*"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",  # babel makes the character itself a command in some languages
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "−": "$-$",
}


def markdown(table: Table) -> str:
    """Return a table as aligned Markdown: title, table, notes."""
    header = [plain(name) for name in (*table.heads, *table.columns)]
    lines = [[*map(plain, line.heads), *(_markdown_cell(table, cell) for cell in line.cells)] for line in table.lines]
    left = [True] * len(table.heads) + [table.has_words(i) for i in range(len(table.columns))]
    parts = [f"**{plain(table.caption)}**", markdown_table(header, lines, left)]
    if table.notes:
        parts.append("\n".join(f"- {plain(note)}" for note in table.notes))
    return "\n\n".join(parts) + "\n"


def latex(table: Table) -> str:
    r"""Return a table in LaTeX, as a float with the label `tab:KEY`; it needs `\usepackage{booktabs}` and nothing else.

    Names in other scripts than Latin are unchanged; XeLaTeX and LuaLaTeX set them with a font that has them.
    """
    heads, columns = ([escape(name) for name in names] for names in (table.heads, table.columns))
    rows = [line for each in table.lines for line in _latex_line(table, each)]
    # The header ends in a rule already.
    if rows[:1] == [r"\midrule"]:
        rows = rows[1:]
    wide = [r"\small\setlength{\tabcolsep}{3pt}"] if len(columns) > 8 else []
    notes = [r"\par\smallskip", rf"{{\footnotesize {' '.join(map(escape, table.notes))}\par}}"] if table.notes else []
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            *wide,
            rf"\caption{{{escape(table.caption)}}}",
            rf"\label{{tab:{slug(table.key)}}}",
            rf"\begin{{tabular}}{{{'l' * len(heads)}{''.join('rl'[table.has_words(i)] for i in range(len(columns)))}}}",
            r"\toprule",
            rf"{' & '.join((*heads, *columns))} \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def csv(table: Table) -> str:
    """Return a table as CSV (RFC 4180), values as they were measured; ` sd` and ` mark` columns where there are any."""
    columns: list[tuple[str, list[str | float | None]]] = [
        (name, [line.heads[i] for line in table.lines]) for i, name in enumerate(table.heads)
    ]
    for i, name in enumerate(table.columns):
        cells = [line.cells[i] for line in table.lines]
        columns.append((name, [cell.text if cell.value is None else float(cell.value) for cell in cells]))
        if any(cell.spread is not None for cell in cells):
            columns.append((f"{name} sd", [cell.spread for cell in cells]))
        if any(cell.mark for cell in cells):
            columns.append((f"{name} mark", [cell.mark for cell in cells]))
    file = io.StringIO()
    names, values = zip(*columns, strict=True)
    _csv.writer(file).writerows([names, *zip(*values, strict=True)])
    return file.getvalue()


FILES: Mapping[str, Callable[[Table], str]] = {"tex": latex, "csv": csv}
"""Suffix of a table's file → its text."""


def slug(name: str) -> str:
    """Return a name of small letters, digits and hyphens, for files, links and labels: `mAP@20` → `map-20`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "table"


def escape(text: str) -> str:
    """Return a text as LaTeX that prints it; control characters become spaces."""
    escaped = "".join(_LATEX.get(character, character) for character in _CONTROL.sub(" ", text))
    return re.sub("-(?=-)", "-{}", escaped)  # two of them would become a dash


def _latex_line(table: Table, line: Line) -> list[str]:
    cells = [*map(escape, line.heads), *(_latex_cell(table, cell) for cell in line.cells)]
    return [r"\midrule"] * line.rule + [rf"{' & '.join(cells)} \\"]


def _latex_cell(table: Table, cell: Cell) -> str:
    shown = escape(table.shown(cell) if cell.value is None else minus(table.shown(cell)))
    shown = {"best": rf"\textbf{{{shown}}}", "second": rf"\textit{{{shown}}}", "": shown}[cell.place]
    return shown + (rf"\textsuperscript{{{escape(cell.mark)}}}" if cell.mark else "")


def _markdown_cell(table: Table, cell: Cell) -> str:
    shown = plain(table.shown(cell))
    around = {"best": "**", "second": "*", "": ""}[cell.place]
    return f"{around}{shown}{around}{plain(cell.mark)}"


def plain(text: str) -> str:
    """Return a text as Markdown that shows it."""
    return _MARKDOWN.sub(r"\\\1", _CONTROL.sub(" ", text)).strip()


def terminal(text: str) -> str:
    r"""Return Markdown for a terminal: without escapes, and with the columns of tables in line.

    Example:
        >>> print(terminal(r"| a | b\_c |"))
        | a | b_c  |
    """
    return "\n".join("|".join(map(_bare, _BARS.split(line))) for line in text.split("\n"))


def _bare(cell: str) -> str:
    shown = _ESCAPED.sub(r"\1", cell)
    return shown + " " * (len(cell) - len(shown)) * cell.endswith(" ")


def minus(number: str) -> str:
    """Return a number with a true minus sign, which is as wide as a digit."""
    return number.replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Return a time as one reads it: `8 s`, `3 min 20 s`, `2 h 18 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
