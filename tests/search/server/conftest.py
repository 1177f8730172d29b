"""An index of the built-in encoder, and a server of it."""

import pytest

from helpers.serving import demo_passages, running, searcher_of
from metasearch.encoders.load import load_encoder


@pytest.fixture(scope="session")
def searcher(tmp_path_factory):
    """Return the first 20 sentences of three languages of the embedded benchmark, in the vectors of `mini`."""
    passages = [passage for language in ("ar", "de", "en") for passage in demo_passages(language)[:20]]
    return searcher_of(tmp_path_factory.mktemp("served") / "index", passages, load_encoder("mini", device="cpu"))


@pytest.fixture(scope="session")
def served(searcher):
    """Return a server of it, with limits that tests reach."""
    with running(searcher, inputs=8, size=20_000, hits=20) as found:
        yield found
