"""Questions with the largest difference between learners, as data, and a small script to show them.

Texts stand once in a JSON data block, and the script sets them as text, never as markup. Where no script runs, a list
of the questions with both values stands in its place.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup

from metasearch.evaluation.report.explorer import Explorer, changed_pairs, explorers
from metasearch.evaluation.report.page import environment, source
from metasearch.evaluation.report.section import Inputs, Section
from metasearch.evaluation.report.svg import clean
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.study import Study
from metasearch.runs.per_query_results import Text

ORDER = 70
LIMIT = 1_500_000
"""Bytes of the questions and candidates; a page has room for charts and tables beside them."""

HEADING = "Questions that learners differ on"
NOTHING = (
    "There is nothing to explore: the task ranks no candidates, or no two learners were tested on the same questions."
)


def section(inputs: Inputs) -> Section | None:
    """Return these questions; None if no run has per-query results."""
    study, comparison = inputs.with_questions, inputs.comparison
    baseline = comparison.baseline if comparison else study.baseline if study.arms else None
    return explorer_section(study, baseline, inputs.selection.measure) if baseline else None


def explorer_section(study: Study, baseline: Arm, measure: str | None = None, count: int = 20) -> Section:
    """Return a section on the questions that the baseline and each other learner differ on most, `count` at most.

    With more than `LIMIT` bytes of data, each pair of learners loses its questions with the smallest differences.
    Errors as `explore`.
    """
    pairs = [explorer for explorer in explorers(study, baseline, count, measure) if explorer.questions]
    if not pairs:
        others = [arm for arm in study.arms if arm != baseline]
        tables = tuple(table for arm in others if (table := changed_pairs(study, baseline, arm, count)))
        return Section("explorer", HEADING, () if tables else (NOTHING,), tables=tables)
    pairs, data = _within(pairs, LIMIT)
    template = environment().get_template("explorer.html.j2")
    html = Markup(template.render(explorers=pairs, data=data, average=_average(pairs[0].measure)))
    style, script = source("explorer.css"), source("explorer.js")
    return Section("explorer", HEADING, _paragraphs(pairs), html=html, style=style, script=script)


def _paragraphs(pairs: Sequence[Explorer]) -> tuple[str, ...]:
    shown, of = max(len(e.questions) for e in pairs), max(e.compared for e in pairs)
    average = _average(pairs[0].measure)
    which = f"the {shown} questions of {of} that" if shown < of else f"all {of} questions, first those that"
    paragraphs = [
        f"What was ranked where: {which} two learners differ on most, by the difference of {average} (× 100), mean "
        "over the languages of a question. The pool has candidates of all languages; those that answer are marked ✓."
    ]
    if max(count for e in pairs for count in e.seeds) > 1:
        paragraphs.append(f"{average} is the mean over seeds; the ranking is that of the first seed.")
    return tuple(paragraphs)


def _average(measure: str) -> str:
    """Return the name of mean average precision for one question: `AP@20`."""
    return f"AP{measure.removeprefix('map')}" if measure.startswith("map") else measure


def _within(pairs: Sequence[Explorer], limit: int) -> tuple[list[Explorer], Markup]:
    """Return as many questions of each pair as the limit has room for, at least one, and them as JSON."""
    count = max(len(explorer.questions) for explorer in pairs)
    while True:
        fewer = [replace(explorer, questions=explorer.questions[:count]) for explorer in pairs]
        data = _json(fewer)
        size = len(data.encode())
        if size <= limit or count == 1:
            return fewer, data
        count = max(1, min(count - 1, count * limit // size))


def _json(pairs: Sequence[Explorer]) -> Markup:
    """Return the pairs as JSON that may stand in a script element: `<`, `>` and `&` only as escapes.

    A text is its index among `texts`, and a candidate the list of rank, text, whether relevant, and score or null.
    """
    texts: dict[tuple[str, str], int] = {}

    def plain(value: Any) -> Any:
        """Return a text as its index, new ones at the end, and any other object as its attributes."""
        if isinstance(value, Text):
            return texts.setdefault((value.language, value.text), len(texts))
        return vars(value)

    listed = [{"baseline": e.baseline, "other": e.other, "questions": e.questions} for e in pairs]
    # Candidates of all languages are most of it: as UTF-8 they take half of what ASCII escapes would.
    dump = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=plain)
    shown = dump(listed)  # before the texts that it names
    text = clean(f'{{"average":{dump(_average(pairs[0].measure))},"pairs":{shown},"texts":{dump(list(texts))}}}')
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
