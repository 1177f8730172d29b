"""Checks of an index for `metasearch doctor`."""

from collections.abc import Iterator
from pathlib import Path

from metasearch.errors import MetasearchError
from metasearch.runs.findings import Finding
from metasearch.search.index.database import read_state
from metasearch.search.index.local import LocalStore


def check_index(folder: Path) -> Iterator[Finding]:
    """Yield whether the files of an index are sound, how it is searched, and the languages its encoder hardly knows."""
    try:
        if read_state(folder).get("files") is None:
            yield Finding("files", "not finished; run metasearch index with its documents again to continue", "note")
            return
        store = LocalStore.open(folder)
        store.verify()
    except MetasearchError as error:
        yield Finding.of_error("files", error)
        return
    found = f"{store.places:,} passages of {len(store.files):,} documents, all sound; encoder '{store.kind.encoder}'"
    yield Finding("files", found)
    plan = store.plan
    ranked = " ".join(plan.ranking.options) or "as by default"
    translated = f"; translations of {plan.translated} pages" if plan.translations is not None else ""
    learned = f"; centre of queries from {plan.learned.count:,} queries" if plan.learned else ""
    labelled = f" with {len(plan.adapter.labelled):,} queries" if plan.adapter and plan.adapter.labelled else ""
    adapted = f"{translated}{learned}" + (f"; adapter '{plan.adapter.name}'{labelled}" if plan.adapter else "")
    site = f", addresses below {store.site}" if store.site else ""
    yield Finding("search", f"{ranked}{adapted}; paths below {store.root}{site}")
    for tag, reason in store.unknown.items():
        yield Finding(f"language {tag}", f"encoder '{store.kind.encoder}' hardly knows it: {reason}", "note")
