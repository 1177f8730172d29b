"""`metasearch demo`: an index of the task that it trains on."""

import json
from pathlib import Path

from metasearch.config.run import Device
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.errors import quoted
from metasearch.io import atomic_write_all
from metasearch.retrieval.indexes import index_documents
from metasearch.runs.callbacks import Callback

DEMO_QUESTION = "How do sailors know at night which lighthouse they are looking at?"


def index_articles(folder: Path, encoder: Path, task: str, device: Device, callback: Callback) -> str:
    """Write a task's sentences and their index beside its runs, for `metasearch demo`; return a search command."""
    data = load_benchmark(task).data
    assert isinstance(data, RetrievalData)
    rows: dict[Path, str] = {}
    for candidate in data.candidates:
        path = folder / "articles" / f"{candidate.language}.jsonl"
        row = json.dumps({"text": candidate.shown or candidate.text}, ensure_ascii=False)
        rows[path] = f"{rows.get(path, '')}{row}\n"
    atomic_write_all(rows)
    index_documents([folder / "articles"], folder / "index", str(encoder), device=device, callback=callback)
    return f'metasearch search {quoted(folder / "index")} "{DEMO_QUESTION}"'
