"""What a run says of the translations that it trains on, and that they are the same when it goes on."""

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
