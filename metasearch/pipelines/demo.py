"""`metasearch demo`: the articles that it trains on, as files to index."""

import json
from pathlib import Path

from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.errors import quoted
from metasearch.io import atomic_write_all

DEMO_QUESTION = "How do sailors know at night which lighthouse they are looking at?"


def write_articles(folder: Path, encoder: Path, task: str) -> list[str]:
    """Write a task's sentences beside its runs; return the commands that index and search them."""
    data = load_benchmark(task).data
    assert isinstance(data, RetrievalData)
    rows: dict[Path, str] = {}
    for candidate in data.candidates:
        path = folder / "articles" / f"{candidate.language}.jsonl"
        row = json.dumps({"text": candidate.shown or candidate.text}, ensure_ascii=False)
        rows[path] = f"{rows.get(path, '')}{row}\n"
    atomic_write_all(rows)
    articles, index = quoted(folder / "articles"), quoted(folder / "index")
    return [
        f"metasearch index {articles} -o {index} --encoder {quoted(encoder)}",
        f'metasearch search {index} "{DEMO_QUESTION}"',
    ]
