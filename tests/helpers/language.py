"""Measures the language of documents, help texts, docstrings and error messages.

A sentence ends at `.`, `!` or `?`, or where its paragraph or list item ends. Code blocks, tables, headings and
comments are no prose. Code between backticks is one word; a link is its text.
"""

import re
from dataclasses import dataclass

LONGEST = 40
"""Words that a sentence may have."""
MOST_DECIMALS = 3
"""Decimal numbers that a paragraph may have; more belong in a table."""
MOST_COLUMNS = 6
REFUSED = (
    "told from", "told apart", "left out", "go on", "goes on", "went on", "those of", "that of", "come to", "comes to",
    "came to", "as it is", "as they are", "on the way back", "the former", "the latter", "what is", "what it is",
    "held apart", "by trial", "is called so",
)  # fmt: skip
"""Turns that a reader has to translate; each has a plainer form."""
CLAUSES = {"which", "that", "what", "whose"}
OPENERS = {
    "of", "for", "with", "in", "on", "at", "by", "from", "to", "into", "as", "over", "under", "beside", "between",
    "without", "per", "it", "they", "this", "that", "these", "those", "what", "which", "who", "whose", "where", "when",
    "if", "its",
}  # fmt: skip
"""Prepositions, pronouns and conjunctions, with which no help text begins."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_\[]*[A-Z0-9`λτ])")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a Markdown text, without code, tables, headings and comments."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->|^:::.*?$", "", text, flags=re.S | re.M)
    found: list[str] = []
    fresh = True
    for line in text.splitlines():
        if not line.strip() or re.match(r"\s*(\||#|!\[|\[!\[|\$\$|!!!)", line):
            fresh = True
        elif fresh or _ITEM.match(line):
            found.append(_ITEM.sub("", line).strip())
            fresh = False
        else:
            found[-1] += f" {line.strip()}"
    return [plain(paragraph) for paragraph in found]


def plain(text: str) -> str:
    """Return a paragraph whose code is one word `CODE`, and whose links and pictures are their texts."""
    text = re.sub(r"`[^`]+`", "CODE", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown text."""
    return [part for paragraph in paragraphs(text) for part in _SENTENCE_END.split(paragraph) if words(part)]


def words(text: str) -> list[str]:
    """Return the words of a text, without marks and numbers that stand alone."""
    return re.findall(r"[^\W\d_][\w'’./-]*", text)


@dataclass(frozen=True)
class Rates:
    """Averages of a text; `of` and `clauses` (which, that, what, whose) are for each 1,000 words."""

    words: int
    sentence: float
    of: float
    clauses: float


def rates(text: str) -> Rates:
    """Measure a Markdown text."""
    parts = sentences(text)
    found = [word.lower() for part in parts for word in words(part)]
    clauses = sum(map(CLAUSES.__contains__, found))
    most = max(len(found), 1)
    return Rates(len(found), len(found) / max(len(parts), 1), 1000 * found.count("of") / most, 1000 * clauses / most)


def turns(sentence: str) -> int:
    """Return how often a sentence has `of` or begins a relative clause."""
    return sum(word.lower() in {"of", *CLAUSES} for word in words(sentence))


def long_sentences(text: str) -> list[str]:
    """Return the sentences of more than 40 words."""
    if len(text) <= 2 * LONGEST:  # a word has a letter and a space at least
        return []
    return [part for part in sentences(text) if len(words(part)) > LONGEST]


def refused_turns(text: str) -> list[str]:
    """Return the refused turns of a Markdown text, each with its sentence."""
    return [f"{turn}: {part}" for part in sentences(text) for turn in REFUSED if re.search(rf"\b{turn}\b", part, re.I)]


def crowded_paragraphs(text: str) -> list[str]:
    """Return the paragraphs with more than three decimal numbers; an estimate and its interval in brackets are one."""
    number = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?![\w.]*\.\d)")
    return [
        part for part in paragraphs(text) if len(number.findall(re.sub(r"\[[-+−\d., ]+\]", "", part))) > MOST_DECIMALS
    ]


def wide_tables(text: str) -> list[str]:
    """Return the heads of the tables with more than six columns."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", text, flags=re.M)
    return [head for head in heads if head.count("|") - head.count(r"\|") - 1 > MOST_COLUMNS]
