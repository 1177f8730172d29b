"""Pools with and without translations: what stands in the second, and a line of each in the table."""

from click.testing import CliRunner

from benchmarks.common.rows import read_rows
from benchmarks.paper import expansion
from metasearch.config.library import shipped
from metasearch.data.benchmark import load_benchmark


def test_in_a_pool_without_translations_what_answers_a_question_is_in_one_language():
    data = load_benchmark("demo").split.test
    part = expansion.without_translations(data, 0)
    languages = {}
    for candidate in part.candidates:
        for question in candidate.answers:
            languages.setdefault(question, set()).add(candidate.language)
    assert {len(own) for own in languages.values()} == {1}
    assert {question.id for question in part.questions} == set(languages)
    assert len(part.candidates) < len(data.candidates)
    assert {c.id for c in expansion.without_translations(data, 1).candidates} != {c.id for c in part.candidates}


def test_an_encoder_has_a_line_for_each_kind_of_pool(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "ROWS", tmp_path / "rows.jsonl")
    words = ["--task", "demo", "--encoder", "tiny", "--draws", "2", "--data", str(shipped())]
    result = CliRunner().invoke(expansion.main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = read_rows(tmp_path / "rows.jsonl")
    assert [(row["pool"], list(row["balanced"])) for row in rows] == [
        ("with translations", ["0", "3"]),
        ("without", ["0", "3"]),
    ]
    head, _, first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines())
    assert head[3:5] + head[-1:] == ["as it is", "balanced", "α = 3, balanced"]
    assert (first[1], second[1]) == ("with translations", "without")
    assert float(first[4]) == round(100 * rows[0]["balanced"]["0"], 2)
    first_rows = [{key: value for key, value in row.items() if key != "balanced"} for row in rows]
    assert expansion.table(first_rows).splitlines()[2].split("|")[5].strip() == ""
