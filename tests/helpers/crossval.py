"""Runs `metasearch crossval` with its cells in this process, as the processes of cells would run them."""

from click.testing import CliRunner

from metasearch.cli import main
from metasearch.errors import MetasearchError
from metasearch.pipelines.resume import open_run
from metasearch.pipelines.study.launchers import local
from metasearch.pipelines.study.process import begin_attempt
from metasearch.runs.rows import read_rows

STEPS = 8
FLAGS = [
    "--task=demo-sts", "--encoder=tiny", "--mode=mono-bi", "--learner=fine-tune", "--folds=0,", "--seeds=0",
    f"--max-steps={STEPS}", "--threads=1", "--device=cpu", "--encoder=tiny",
]  # fmt: skip
ZERO, TUNED = "zero-shot/fold-0-seed-0", "fine-tune-mono-bi/fold-0-seed-0"


class Inline:
    """Stands for the process of a cell; runs it here, at once."""

    begun: list[str]

    def __init__(self, study, name, threads, trust_remote_code):
        self.begun.append(name)
        self.code = 0
        try:
            open_run(study.at(name)).execute(trust_remote_code=trust_remote_code)
        except MetasearchError as error:
            begin_attempt(study, name, str(error))
            self.code = error.exit_code

    def poll(self):
        """Return its exit code."""
        return self.code

    def terminate(self):
        """Do nothing: it has ended."""


def inline(monkeypatch):
    """Run cells in this process; return the names of those that were begun."""
    monkeypatch.setattr(local, "start_cell", Inline)
    monkeypatch.setattr(Inline, "begun", [], raising=False)
    return Inline.begun


def run(*args, code=0):
    """Run `metasearch crossval`; check its exit code and that no traceback is shown."""
    result = CliRunner().invoke(main, ["crossval", *map(str, args)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def scores(folder):
    """Return what a study's scores depend on, without the versions."""
    rows = read_rows(folder / "results.jsonl")
    return [{key: value for key, value in row.items() if key != "versions"} for row in rows]
