"""The examples for other databases are Python, and name columns that the file of vectors has."""

import ast
import re
from pathlib import Path

import pytest

from helpers.documents import names, table

PAGE = Path(__file__).parents[2] / "docs" / "other-databases.md"
EXAMPLES = re.findall(r"^## (\w+)\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("database", "text"), EXAMPLES)
def test_an_example_is_python_and_reads_columns_that_exist(database, text):
    known = {name for cell, _ in table("docs/search-index.md", "column") for name in names(cell)}
    tree = ast.parse(text, database)
    (columns,) = [
        ast.literal_eval(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "columns"
    ]
    assert set(columns) <= known
    assert "encode_queries(" in text


def test_both_databases_have_an_example():
    assert [database for database, _ in EXAMPLES] == ["pgvector", "OpenSearch"]
