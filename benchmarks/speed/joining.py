"""CPU time and memory of a large click log: it is read and joined to its pages.

    python -m benchmarks.speed.joining --rows 1000000 --pages 100000

Each address has a click id of its own, and one in fifty is of a page that is gone. Clicks are Zipf-distributed.
"""

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np

from metasearch.data.labels import load_labels
from metasearch.search.documents.passage import Passage
from metasearch.search.tune.pages import Pages
from metasearch.training.hardware import peak_memory


def write_log(path: Path, rows: int, pages: int) -> None:
    """Write a click log: each query clicks on one of three pages."""
    random = np.random.default_rng(0)
    asked = np.minimum(random.zipf(1.3, rows), pages) - 1
    clicked, gone = (asked + random.integers(0, 3, rows)) % pages, random.random(rows) < 0.02
    with path.open("w", encoding="utf-8", newline="") as file:
        log = csv.writer(file)
        log.writerow(["query", "url", "language"])
        for i, (query, page, lost) in enumerate(zip(asked, clicked, gone, strict=True)):
            folder = "old" if lost else f"part{page % 100}"
            log.writerow([f"Where is number {query}?", f"https://example.org/{folder}/page{page}?gclid={i}", "en"])


def main() -> None:
    """Print the seconds of CPU time and the peak of memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pages", type=int, default=100_000)
    asked = parser.parse_args()
    passages = [Passage(f"Text of page {i}.", f"site/part{i % 100}/page{i}.md", 1, "en") for i in range(asked.pages)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.csv"
        write_log(path, asked.rows, asked.pages)
        start = time.process_time()
        data = load_labels(path, named=True)
        read = time.process_time()
        files = [passage.file for passage in passages]
        pages = Pages.of(data, passages, files, range(len(passages)), ["site"], 20_000, None)
        end = time.process_time()
    print(*pages.notes, sep="\n")
    print(f"CPU time: {end - start:.1f} s (reading {read - start:.1f} s); memory: {peak_memory() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
