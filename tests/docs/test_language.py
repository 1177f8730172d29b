"""Documents, help texts, docstrings and error messages are plain English: the rules of CONTRIBUTING, measured."""

import ast

import pytest

from helpers import language
from helpers.documents import DOCUMENTS, ROOT
from metasearch.cli import main

PAGES = {**DOCUMENTS, "benchmarks/README.md": (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")}
HELP = [(name, main.get_command(None, name)) for name in main.list_commands(None)]


def messages_and_docstrings():
    """Yield the place and text of every error message and of every docstring's first line."""
    for path in sorted((ROOT / "metasearch").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                yield f"{path}:{node.lineno}", " ".join(part for part in parts if isinstance(part, str))
            elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield f"{path}:{getattr(node, 'lineno', 1)}", text.splitlines()[0]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_short_sentences_plain_turns_and_numbers_in_tables_and_is_in_the_range_of_the_references(page):
    """Of 13 projects of the field: 11 to 17 words a sentence, 5 to 22 `of` and 6 to 14 clauses for each 1,000 words."""
    text = PAGES[page]
    assert language.long_sentences(text) == []
    assert language.refused_turns(text) == []
    assert language.crowded_paragraphs(text) == []
    assert language.wide_tables(text) == []

    rates = language.rates(text)
    assert rates.sentence <= 16
    if rates.words >= 300:  # a short page may have one more by chance
        assert rates.of <= 24
        assert rates.clauses <= 13


def test_no_help_text_begins_with_a_preposition_or_a_pronoun():
    texts = {(name, option.name): getattr(option, "help", None) for name, command in HELP for option in command.params}
    begun = {place: text for place, text in texts.items() if text and language.words(text)}
    assert [
        (*place, text) for place, text in begun.items() if language.words(text)[0].lower() in language.OPENERS
    ] == []
    assert [(*place, turn) for place, text in begun.items() for turn in language.refused_turns(text)] == []
    assert [(*place, part) for place, text in begun.items() for part in language.long_sentences(text)] == []


def test_messages_and_docstrings_are_short_and_plain():
    """Each sentence has 30 words at most, and `of` and relative clauses three times at most together."""
    found = list(messages_and_docstrings())
    assert [(where, turn) for where, text in found for turn in language.refused_turns(text)] == []
    hard = [
        (where, sentence)
        for where, text in found
        for sentence in language.sentences(text)
        if len(language.words(sentence)) > 30 or language.turns(sentence) > 3
    ]
    assert hard == []
