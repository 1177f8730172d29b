"""The table of other ways to remove the language from vectors, from `results/page_rivals.jsonl`.

The script of its rows is in revision f20bdb5d (`benchmarks/README.md`, "Answered questions").
"""

from collections.abc import Sequence

from benchmarks.common.rows import Row, latest_rows
from benchmarks.pages.asked import ANY, CHOSE_NOTHING, MAP, OTHER, OWN, cell
from metasearch.runs.markdown import markdown

TITLES = ("gnome60-no-titles", "developers-reference-no-titles")
PASSAGE, PAGES = "best passage", "page scores"
OURS = "metasearch"
VECTORS = (OURS, "unchanged", "SHIFT", "centred by language", "LEACE", "sparse autoencoder")


def identify(row: Row) -> tuple[object, ...]:
    """Return what a row is known by."""
    return row["kind"], row["set"], row["vectors"], row["ranked"], row["encoder"]


def table(rows: Sequence[Row], encoder: str = "e5") -> str:
    """Return values on questions about sets that chose nothing, and mAP@20 of titles, with differences from ours."""
    last = {identify(row): row for row in latest_rows(rows, identify)}

    def pick(kind: str, sets: Sequence[str], vectors: str, ranked: str) -> list[Row]:
        keys = [(kind, name, vectors, ranked, encoder) for name in sets]
        return [last[key] for key in keys if key in last]

    lines = []
    for ranked in (PASSAGE, PAGES):
        for name in VECTORS:
            cells = []
            for kind, sets, value in (
                ("questions", CHOSE_NOTHING, OWN), ("questions", CHOSE_NOTHING, ANY),
                ("questions", CHOSE_NOTHING, OTHER), ("titles", TITLES, MAP),
            ):  # fmt: skip
                own, baseline = (pick(kind, sets, vectors, ranked) for vectors in (name, OURS))
                same = name != OURS and [row["set"] for row in own] == [row["set"] for row in baseline]
                cells.append(cell(own, baseline if same else [], value) if own else "")
            if any(cells):
                lines.append([name, ranked, *cells])
    return markdown(["vectors", "pages by", OWN, ANY, OTHER, "titles, mAP@20"], lines, left=2)
