"""Every table of the documents is what the rows of `benchmarks/results/` give, and shows them rightly."""

import pytest
from click.testing import CliRunner

from benchmarks import tables
from benchmarks.paper import maml_align_paper, study_tables
from metasearch.errors import ConfigError


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
    text = (tables.ROOT / "benchmarks" / "TABLES.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("task", "arm", "mean"),
    [
        ("lareqa", ("zero-shot", None), 57.0),
        ("lareqa", ("fine-tune", "mono-mono"), 47.0),
        ("lareqa", ("maml", "trans"), 57.2),
        ("lareqa", ("maml-align", "mono-bi-multi"), 57.6),
        ("stsb", ("zero-shot", None), 81.4),
        ("stsb", ("fine-tune", "mono-bi"), 79.9),
        ("stsb", ("maml-align", "mono-bi-multi"), 82.4),
    ],
)
def test_rows_of_tables_7_and_8_have_the_means_of_table_1(task, arm, mean):
    languages, figures = maml_align_paper.TABLE[task]
    assert len(figures[arm]) == len(languages)
    assert sum(figures[arm]) / len(languages) == pytest.approx(mean, abs=0.05)


def study_row(learner, mode, mean, **against):
    shared = {"task": "lareqa", "folds": [0, 1, 2, 3, 4]}
    return {**shared, "learner": learner, "mode": mode, "label": learner, "mean": mean, "against": against}


def difference(value, low, high):
    training = {"low": low, "high": high, "p": 0.01, "se": 0.1, "df": 4, "over": "folds", "holm": 0.01}
    return {"difference": value, "low": value - 0.001, "high": value + 0.001, "training": training}


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [(-0.01, -0.015, -0.005, "holds"), (0.01, 0.005, 0.015, "reversed"), (0.01, -0.001, 0.021, "not significant")],
)
def test_an_order_holds_where_the_interval_says_so(value, low, high, verdict):
    against = {"zero-shot": difference(value, low, high)}
    rows = [study_row("zero-shot", None, 0.5), study_row("fine-tune", "mono-mono", 0.5 + value, **against)]
    line = study_tables.orders_table(rows).splitlines()[2]
    assert "| -10.0 |" in line  # 47.0 less 57.0
    assert line.endswith(f"{verdict} |")
