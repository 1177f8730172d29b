"""Every table of the documents is what the rows of `benchmarks/results/` give, and shows them rightly."""

import pytest
from click.testing import CliRunner

from benchmarks import tables
from metasearch.errors import ConfigError


@pytest.mark.slow
def test_the_documents_have_the_tables_of_the_rows():
    result = CliRunner().invoke(tables.main, ["--check"])
    assert result.exit_code == 0, result.output


def test_every_table_stands_in_a_document():
    folders = (tables.ROOT / "benchmarks", tables.ROOT / "docs")
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.md")]
    assert {block[2] for text in texts for block in tables.TABLE.finditer(text)} == set(tables.TABLES)


@pytest.mark.slow
def test_a_figure_that_no_row_gives_is_named_with_its_document(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    whole = (tables.ROOT / "benchmarks" / "TABLES.md").read_text(encoding="utf-8")
    (text,) = [block[0] for block in tables.TABLE.finditer(whole) if block[2] == "lareqa-summary"]
    (tmp_path / "README.md").write_text(text.replace("21.88 ± 2.09", "99.99 ± 2.09", 1), encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    result = CliRunner().invoke(tables.main, ["--check"])
    assert result.exit_code == 1
    assert "README.md: table 'lareqa-summary'" in result.output.splitlines()
    assert "99.99" in (tmp_path / "README.md").read_text(encoding="utf-8")  # --check writes nothing
    assert CliRunner().invoke(tables.main, []).exit_code == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text


def test_a_table_that_there_is_not_is_an_error_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"docs/a\.md: there is no table 'lareqa-sumary'.* 'lareqa-summary'"):
        tables.filled("<!-- table: lareqa-sumary -->\n<!-- end of table -->", "docs/a.md")
