"""The page about production runs as written, from the click log to the second model and back."""

import csv
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.commands import metasearch
from helpers.documents import ROOT, blocks
from helpers.indexes import kind, made
from helpers.serving import counted, running
from metasearch.errors import EncoderError
from metasearch.search.index.writer import writing
from metasearch.search.indexes import index_documents, open_searcher

PAGE = "docs/production.md"
LINES = [line for text in blocks(PAGE, "sh") for line in text.splitlines()]
NOT_RUN = ("pip ", "uv ", "du ", "systemctl ", "python -m benchmarks", "time ")
"""What changes the machine of the tests, or measures it."""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Go to a folder with two sites, and the clicks of each question on the page in its language."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "docs/example/help-pages", "site")
    Path("blog").mkdir()
    Path("blog/news.en.txt").write_text("Parcels now come on Saturdays, too.\n", encoding="utf-8")
    labels = csv.DictReader((ROOT / "docs/example/labels.csv").read_text(encoding="utf-8").splitlines())
    clicks = {(row["query"], f"https://example.org/help/{row['id']}.{row['query_language']}.txt") for row in labels}
    for name in ("clicks.csv", "later-clicks.csv"):
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("query", "url"), *sorted(clicks)])


def run(line):
    """Run a line of the page; return what it prints. Encoders are small, and a server ends after a search."""
    words = shlex.split(line)
    if words[:2] == ["metasearch", "serve"]:
        with running(open_searcher(words[2], device="cpu")) as server:
            assert server.get("/health")[1]["status"] == "ready"
            answer = server.post("/search", {"query": "Where is my parcel?"})[1]
            assert len(answer["results"][0]["hits"]) == 10
            assert counted(server, "metasearch_passages") == server.get("/index")[1]["passages"]
        return ""
    if words[0] != "metasearch":
        subprocess.run(words, check=True)
        return ""
    into = Path(words.pop()) if ">>" in words else None
    words = [word for word in words[1:] if word != ">>"]
    new = words[0] == "tune" or (words[0] == "index" and not Path(words[words.index("-o") + 1]).exists())
    printed = metasearch(*words, *(["--encoder", "tiny"] if new else [])).stdout
    if into:
        with into.open("a", encoding="utf-8") as file:
            file.write(printed)
    return printed


@pytest.mark.slow
def test_the_page_runs_as_written(workplace, capsys):
    printed = {line: run(line) for line in LINES if line and not line.startswith(NOT_RUN)}
    assert Path("shop").resolve().name == "shop-2"
    (night,) = map(json.loads, Path("nightly.jsonl").read_text(encoding="utf-8").splitlines())
    assert {name: night[name] for name in ("encoded", "dropped", "skipped", "kept")} == dict(
        encoded=0, dropped=0, skipped=0, kept=0
    )
    assert "blog/news.en.txt:1" in printed['metasearch search all.index "Where is my parcel?" --where path=blog']
    (compared,) = blocks(PAGE, "python")
    capsys.readouterr()
    exec(compile(compared, PAGE, "exec"), {})
    scores = re.findall(r"(shop-\d): mean reciprocal rank 0\.\d\d on 36 clicks", capsys.readouterr().out)
    assert scores == ["shop-1", "shop-2"]


def test_a_link_to_an_index_of_another_encoder_needs_a_new_searcher(tmp_path):
    (tmp_path / "a.txt").write_text("The key is under the mat.")
    index_documents([tmp_path / "a.txt"], tmp_path / "shop-1", "tiny", {"language": "en"}, device="cpu")
    content = made(3)
    with writing(tmp_path / "shop-2", kind()) as store:
        store.upsert(content.vectors, content.passages, content.keys)
        store.finish(content.files())
    (tmp_path / "shop").symlink_to("shop-1")
    searcher = open_searcher(tmp_path / "shop", device="cpu")
    (tmp_path / "shop").unlink()
    (tmp_path / "shop").symlink_to("shop-2")
    with pytest.raises(EncoderError, match="its vectors are of encoder"):
        searcher.reopen()
    assert len(searcher.search(["key"])[0]) == 1
