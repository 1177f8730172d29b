"""Whatever a command does to the disk when its process dies, going on comes to what it would have come to."""

import json
import re
import shutil
import sys
from functools import partial

import pytest

from helpers.crossval import FLAGS, inline
from helpers.kills import finished, killed, moments
from helpers.parallel import flags, save_assistant, texts, write_corpus
from metasearch.cli import main

SMALL = [
    *("--set=budget.meta_train=8", "--set=budget.meta_valid=0", "--set=budget.eval_every=1"),
    *("--set=episodes.k=2", "--set=episodes.q=2", "--max-steps=2", "--device=cpu", "--encoder=tiny"),
]
TRAIN = ["train", "--task=demo-sts", "--mode=mono-bi", "--learner=maml", *SMALL]
pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(0)]
VOLATILE = ("facts.json", "report.md", "SHA256SUMS", ".lock")
"""Files that name times or hashes of those that do, or hold nothing."""


def command(*args):
    """Return a function that runs the command line."""
    return partial(main, [str(arg) for arg in args])


def inlined(*args):
    """Return a function that runs a command of a study with its cells in this process."""

    def run():
        with pytest.MonkeyPatch.context() as patch:
            inline(patch)
            main([str(arg) for arg in args])

    return run


def content(path):
    """Return what a file holds, without what tells only when and where it was made."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [{key: value for key, value in row.items() if key not in ("seconds", "time")} for row in rows]
    return path.read_bytes()


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in VOLATILE)
    return {path.relative_to(folder).as_posix(): content(path) for path in files}


def differing(whole, out):
    """Return in which files two folders, or two files, differ; None where they are the same."""
    if whole.is_file():
        return None if whole.read_bytes() == out.read_bytes() else "differs"
    expected, found = contents(whole), contents(out)
    names = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    return f"differs in {', '.join(sorted(names))}" if names else None


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    (folder / "texts").mkdir()
    for code in ("de", "en", "tr"):
        (folder / "texts" / f"{code}.txt").write_text("\n".join(texts(code)), encoding="utf-8")
    # In a process of its own, as everything here: it leaves nothing in this one.
    code, said = finished(command(*TRAIN, "-o", folder / "run"), folder)
    assert code == 0, said
    return folder


DISTILLED = ("--stages=1-4", "--evaluate=demo-sts", "--device=cpu")
RESUMABLE = {
    "train": lambda place, out: command(*TRAIN, "-o", out),
    "distill": lambda place, out: command("distill", *flags(place, *DISTILLED, steps=2), "-o", out),
    "crossval": lambda place, out: inlined("crossval", *FLAGS, "--max-steps=2", "--keep-models", "-o", out),
}


def survived(begin, go_on, whole, out, moment):
    """Kill a command at a moment, go on as its messages say, and return what is wrong with what it comes to."""
    if not killed(begin, out.parent, moment):
        return "never came to it"
    code, said = finished(go_on, out.parent)
    if code == 5 and ("does not exist" in said or "it has neither config.yaml" in said or "is no study" in said):
        # Killed before there was anything to go on with: the same command begins again.
        code, said = finished(begin, out.parent)
    if code:
        return f"exit {code}: {said.strip().splitlines()[-1]}"
    return differing(whole, out)


WRITING = {
    "neutralise": lambda place, out: command(
        "neutralise", place / "assistant", "--texts", place / "texts", "--device=cpu", "-o", out
    ),
    "compress": lambda place, out: command("compress", place / "assistant", "--bottleneck=8", "-o", out),
    "report": lambda place, out: command("report", place / "run", "-o", out),
}


def written_again(begin, whole, out, moment):
    """Kill a command at a moment, call it again as its messages say, and return what is wrong with what it writes."""
    if not killed(begin, out.parent, moment):
        return "never came to it"
    code, said = finished(begin, out.parent)
    for _ in range(2):
        if code != 5:
            break
        # What the dead process left is named, and what to do with it.
        named = re.search(r"(\S+) exists: another process writes .* delete it if none runs|(\S+) exists already", said)
        if named is None:
            break
        shutil.rmtree(named[1] or named[2])
        code, said = finished(begin, out.parent)
    if code:
        return f"exit {code}: {said.strip().splitlines()[-1]}"
    left = sorted(path.name for path in out.parent.iterdir() if path.name not in (out.name, f"{out.name}.lock"))
    if left:
        return f"left {', '.join(left)}"
    return differing(whole, out)


def check(begin, wrong_after, tmp_path, name, capsys):
    """Kill a command at each of its moments; `wrong_after` tells what is wrong with what comes after one."""
    # The same name for all, as folders may name themselves.
    whole = tmp_path / "whole" / name
    whole.parent.mkdir()
    found, wrong = moments(begin(whole), whole.parent), {}
    for i, moment in enumerate(found):
        out = tmp_path / str(i) / name
        out.parent.mkdir()
        if problem := wrong_after(whole, out, moment):
            wrong[str(moment)] = problem
        shutil.rmtree(out.parent, ignore_errors=True)
    with capsys.disabled():
        sys.stdout.write(f"\nkilled at {len(found)} moments, {len(found) - len(wrong)} survived\n")
    assert wrong == {}


@pytest.mark.parametrize("kind", WRITING)
def test_what_is_killed_while_it_writes_is_there_whole_or_not_at_all(place, tmp_path, kind, capsys):
    begin = partial(WRITING[kind], place)
    check(begin, lambda whole, out, moment: written_again(begin(out), whole, out, moment), tmp_path, "out", capsys)


@pytest.mark.parametrize("kind", RESUMABLE)
def test_what_is_killed_at_any_moment_comes_to_the_same(place, tmp_path, kind, capsys):
    begin, call = partial(RESUMABLE[kind], place), inlined if kind == "crossval" else command

    def wrong_after(whole, out, moment):
        return survived(begin(out), call("resume", out), whole, out, moment)

    check(begin, wrong_after, tmp_path, "run", capsys)
