"""The embedded articles as an index, searched with an encoder trained on others."""

import json
from pathlib import Path

from metasearch.config.run import Device
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.errors import quoted
from metasearch.io import atomic_write_all
from metasearch.pipelines.search import index_documents
from metasearch.runs.callbacks import Callback

QUESTION = "How do sailors know at night which lighthouse they are looking at?"


def index_articles(folder: Path, encoder: Path, task: str, device: Device, callback: Callback) -> str:
    """Write a task's sentences and their index beside its runs; return a search command.

    Args:
        folder: of the runs.
        encoder: folder of the model.
        task: of retrieval.
        device: where the encoder runs.
        callback: hears of the progress.
    """
    data = load_benchmark(task).data
    assert isinstance(data, RetrievalData)
    rows: dict[Path, str] = {}
    for candidate in data.candidates:
        path = folder / "articles" / f"{candidate.language}.jsonl"
        row = json.dumps({"text": candidate.shown or candidate.text}, ensure_ascii=False)
        rows[path] = f"{rows.get(path, '')}{row}\n"
    atomic_write_all(rows)
    index_documents([folder / "articles"], folder / "index", str(encoder), device=device, callback=callback)
    return f'metasearch search {quoted(folder / "index")} "{QUESTION}"'
