"""A bit that flips in a file of a run or study: the answer is the right one, or an error that names a file."""

import json
import random
import re
import shutil

import pytest
from click.testing import CliRunner

from helpers.crossval import inline
from malformed.bases import BASES
from metasearch.cli import main
from metasearch.runs.rows import read_rows

FLIPS = 3
"""Bits of each file that flip, one at a time."""
DOCUMENTED = {2, 3, 4, 5, 6, 7, 8}

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A finished run, one that was stopped after a step, and a study of two cells."""
    folder = tmp_path_factory.mktemp("sound")
    for name in READERS:
        BASES[name](folder / name)
    return folder


def files_of(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def flipped(path, seed):
    """Flip a bit of a file, the same one for the same seed."""
    content = bytearray(path.read_bytes())
    at = random.Random(f"{path.name}-{seed}").randrange(len(content) * 8)
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)


def scores(folder):
    """Return what a run or study came to, without what differs from one time to the next."""
    rows = read_rows(folder / "results.jsonl")
    return [{key: value for key, value in row.items() if key not in ("versions", "processor")} for row in rows]


COMMANDS = {
    "compare": ("--json", "FOLDER"),
    "report": ("--json", "FOLDER", "-o", "FOLDER/../report"),
    "resume": ("--json", "FOLDER"),
}


def answer(command, folder):
    """Return exit code, answer and error of a command; the answer is what its output and its files say of scores."""
    shutil.rmtree(folder.parent / "report", ignore_errors=True)
    ran = CliRunner().invoke(main, [command, *(arg.replace("FOLDER", str(folder)) for arg in COMMANDS[command])])
    assert "Traceback" not in ran.output
    assert "a bug in metasearch" not in ran.output
    if ran.exit_code:
        return ran.exit_code, None, ran.output
    if command == "report":
        tables = json.loads((folder.parent / "report" / "tables.json").read_text(encoding="utf-8"))
        return 0, tables, ran.output
    if command == "resume" and (folder / "results.jsonl").is_file():
        return 0, scores(folder), ran.output
    return 0, ran.stdout, ran.output


READERS = {"run": tuple(COMMANDS), "stopped": ("resume",), "study": tuple(COMMANDS)}


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_changes_no_answer_without_an_error_that_names_a_file(place, tmp_path, name, monkeypatch):
    inline(monkeypatch)
    # Always at the same place, as answers name it.
    folder = tmp_path / "place" / name

    def fresh():
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(place / name, folder)

    expected = {}
    for command in READERS[name]:
        fresh()
        code, expected[command], said = answer(command, folder)
        assert code == 0, said
    wrong = []
    for path in files_of(place / name):
        for seed in range(FLIPS):
            for command in READERS[name]:
                # A model is the user's to change. So is what is not finished, but for its checkpoints.
                mine = path.parts[0] == "model" or path.name == "study.yaml" or name == "stopped"
                if mine and not path.parts[0].startswith("checkpoint"):
                    continue
                fresh()
                flipped(folder / path, seed)
                code, found, said = answer(command, folder)
                if code and (
                    code not in DOCUMENTED or not re.search(r"[\w-]+\.[a-z]+|SHA256SUMS|checkpoint|model", said)
                ):
                    wrong.append((command, str(path), seed, code, said[-300:]))
                if not code and found != expected[command]:
                    wrong.append((command, str(path), seed, "another answer"))
    assert wrong == []


def test_an_encoder_with_a_flipped_bit_is_scored_or_refused_and_no_bug(place, tmp_path):
    for path in files_of(place / "run" / "model"):
        for seed in range(FLIPS):
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            shutil.copytree(place / "run" / "model", tmp_path / "model")
            flipped(tmp_path / "model" / path, seed)
            args = ["evaluate", "--task=demo-sts", "--device=cpu", "--encoder", str(tmp_path / "model")]
            ran = CliRunner().invoke(main, args)
            assert ran.exit_code in {0} | DOCUMENTED, (path, seed, ran.output)
            assert "Traceback" not in ran.output
