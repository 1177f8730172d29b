"""The explorer as a section of a report: questions as data, and a small script that shows them.

Texts stand once in a JSON data block, and the script sets them as text, never as markup. Where no script runs, a list
of the questions with both values stands in its place.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from metasearch.reports.changed_pairs import changed_pairs
from metasearch.reports.charts.svg import clean
from metasearch.reports.explorer import Explorer, Hit, Question, Side, explorers
from metasearch.reports.page import Section, environment
from metasearch.runs.questions import Text
from metasearch.study.arms import Arm
from metasearch.study.study import Study

LIMIT = 1_500_000
"""Bytes of the questions and candidates; a page has room for charts and tables beside them."""

HEADING = "Questions that learners differ on"
NONE = (
    "There is nothing to explore: the task ranks no candidates, or no two learners were tested on the same questions."
)


def explorer_section(
    study: Study, baseline: Arm, measure: str | None = None, count: int = 20, limit: int = LIMIT
) -> Section:
    """Return a section on the questions that the baseline and each other learner differ on most.

    Args:
        study: has the learners.
        baseline: what the others are compared with.
        measure: by default the task's first.
        count: questions of each pair of learners, at most.
        limit: bytes of data; with more, each pair loses its questions with the smallest differences.

    Raises:
        ConfigError: there is no such measure.
        DataError: what was kept of a run is damaged.
        RunFolderError: a run kept nothing of its questions.
    """
    found = [explorer for explorer in explorers(study, baseline, count, measure) if explorer.questions]
    if not found:
        tables = tuple(
            filter(None, (changed_pairs(study, baseline, arm, count) for arm in study.arms if arm != baseline))
        )
        return Section("explorer", HEADING, () if tables else (NONE,), tables=tables)
    found, data = _within(found, limit)
    env = environment()
    html = env.get_template("explorer.html.j2").render(explorers=found, data=data, average=_average(found[0].measure))
    loader = env.loader
    assert loader is not None
    style, script = (loader.get_source(env, name)[0] for name in ("explorer.css", "explorer.js"))
    return Section("explorer", HEADING, _paragraphs(found), html=Markup(html), style=style, script=script)


def _paragraphs(found: Sequence[Explorer]) -> tuple[str, ...]:
    shown, of = max(len(e.questions) for e in found), max(e.compared for e in found)
    average = _average(found[0].measure)
    which = f"the {shown} questions of {of} that" if shown < of else f"all {of} questions, first those that"
    said = [
        f"What was ranked where: {which} two learners differ on most, by the difference of {average} (× 100), mean "
        "over the languages of a question. The pool has candidates of all languages; those that answer are marked ✓."
    ]
    if max(count for e in found for count in e.seeds) > 1:
        said.append(f"{average} is the mean over seeds; the ranking is that of the first seed.")
    return tuple(said)


def _average(measure: str) -> str:
    """Return what a mean average precision is called for one question: `AP@20`."""
    return f"AP{measure.removeprefix('map')}" if measure.startswith("map") else measure


def _within(found: Sequence[Explorer], limit: int) -> tuple[list[Explorer], Markup]:
    """Return as many questions of each pair as the limit has room for, at least one, and them as JSON."""
    count = max(len(explorer.questions) for explorer in found)
    while True:
        kept = [replace(explorer, questions=explorer.questions[:count]) for explorer in found]
        data = _json(kept)
        size = len(data.encode())
        if size <= limit or count == 1:
            return kept, data
        count = max(1, min(count - 1, count * limit // size))


def _json(found: Sequence[Explorer]) -> Markup:
    """Return the pairs as JSON that may stand in a script element: `<`, `>` and `&` only as escapes."""
    texts: dict[tuple[str, str], int] = {}
    pairs = [
        {"baseline": e.baseline, "other": e.other, "questions": [_question(q, texts) for q in e.questions]}
        for e in found
    ]
    tree = {"average": _average(found[0].measure), "texts": list(texts), "pairs": pairs}
    # Candidates of all languages are most of it: as UTF-8 they take half of what ASCII escapes would.
    text = clean(json.dumps(tree, ensure_ascii=False, separators=(",", ":")))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _question(question: Question, texts: dict[tuple[str, str], int]) -> dict[str, Any]:
    return {
        "id": question.id,
        "fold": question.fold,
        "values": [_rounded(question.baseline), _rounded(question.other)],
        "versions": [
            {"text": _at(texts, v.text), "sides": [_side(v.baseline, texts), _side(v.other, texts)]}
            for v in question.versions
        ],
    }


def _side(side: Side, texts: dict[tuple[str, str], int]) -> dict[str, Any]:
    """Return a learner's ranking; a candidate is rank, text, whether relevant, and score or null."""

    def row(hit: Hit) -> list[Any]:
        return [hit.rank, _at(texts, hit.candidate), int(hit.relevant), _rounded(hit.score)]

    return {
        "value": _rounded(side.value),
        "seed": side.seed,
        "hits": [row(hit) for hit in side.hits],
        "below": [row(hit) for hit in side.below],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)


def _at(texts: dict[tuple[str, str], int], text: Text) -> int:
    """Return where a text stands among all texts; a new one is added."""
    return texts.setdefault((text.language, text.text), len(texts))
