"""What a run says of the translations that it trains on, and that they are the same when it goes on."""

from typing import Any

from metasearch.data.benchmark import Benchmark
from metasearch.errors import DataError
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import Row


def translated(files: RunFolder, benchmark: Benchmark) -> Row:
    """Return what rows of results say of translations: their fingerprint; nothing where nothing is translated.

    Raises:
        DataError: the run has trained on other translations, as of a program that gives others each time.
    """
    if benchmark.translations is None:
        return {}
    now = benchmark.translations.fingerprint
    if before := next((row["translated"] for row in files.results() if row.get("translated", now) != now), None):
        raise DataError(
            f"{files.path}: the translations have changed since the run began (fingerprint {before}, now {now}); it "
            "cannot go on with others"
        )
    return {"translated": now}


def facts_of(benchmark: Benchmark) -> dict[str, Any]:
    """Return what `facts.json` says of translations; nothing where nothing is translated."""
    done = benchmark.translations
    if done is None:
        return {}
    asked = {"by": done.block.by, "source": done.block.source, "into": list(done.block.into)}
    counts = {"rows": done.rows, "left_out": done.left_out, "own_left_out": done.own}
    return {"translated": {**asked, **counts, "fingerprint": done.fingerprint}}
