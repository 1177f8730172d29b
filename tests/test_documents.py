"""What the README shows, works."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.studies import write_study
from metasearch.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.S)
COMMANDS = sorted(
    {line.split("#")[0].strip() for kind, text in BLOCKS if not kind for line in text.splitlines()}
)  # fmt: skip


def block(start):
    return next(text for _, text in BLOCKS if text.startswith(start))


def test_the_python_example_runs_in_about_ten_lines(capsys):
    code = block("import metasearch as ms")
    assert len([line for line in code.splitlines() if line]) <= 12
    exec(compile(code, "README.md", "exec"), {})
    assert re.fullmatch(r"map@20 \d+\.\d\d -> \d+\.\d\d\n", capsys.readouterr().out)


def test_the_search_example_finds_answers_in_other_languages(capsys):
    exec(compile(block("from sentence_transformers.util import semantic_search"), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    # Where the key is, say the German and the Thai sentence; the Greek one is about bread.
    assert re.fullmatch(r"0\.\d\d Der Schlüssel liegt unter der Matte\.", lines[0])
    assert re.fullmatch(r"0\.\d\d กุญแจอยู่ใต้พรม", lines[1])
    assert len(lines) == 2


def test_a_study_is_compared_from_python_as_shown(tmp_path, monkeypatch, capsys):
    write_study(tmp_path / "studies" / "lareqa", {"zero-shot": 0.5, "maml": 1.5})
    monkeypatch.chdir(tmp_path)
    exec(compile(f"import metasearch as ms\n{block('study = ms.read_study')}", "README.md", "exec"), {"Path": Path})
    assert re.fullmatch(r"maml [+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]\n", capsys.readouterr().out)


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("metasearch ")])
def test_every_command_and_option_exists(command):
    words = command.split()[1:]
    assert words[0] in main.list_commands(None)
    known = {flag for option in main.get_command(None, words[0]).params for flag in option.opts}
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= known


def test_your_own_data_works_as_shown(tmp_path):
    (tmp_path / "shop.yaml").write_text(block("task: shop"), encoding="utf-8")
    (tmp_path / "shop").mkdir()
    row = block('{"id": "returns-1"')
    for language in ("en", "pl"):
        names = [("returns", "subject"), ("something", f"a thing in {language} "), ("label", "label ")]
        rows = [row] * 60
        for old, new in names:
            rows = [text.replace(old, f"{new}{i}") for i, text in enumerate(rows)]
        (tmp_path / "shop" / f"{language}.jsonl").write_text("".join(rows), encoding="utf-8")
    result = CliRunner().invoke(main, ["validate", "shop", "--include", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "data: 60 questions, 120 candidates in 2 languages" in result.stdout
    assert "mode mono-bi: 4 episodes drawn and embedded" in result.stdout


def test_the_exit_codes_are_those_of_the_errors():
    from metasearch import errors

    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.M)}
    codes = {value.exit_code for value in vars(errors).values() if hasattr(value, "exit_code")}
    assert listed == {0, *codes}
