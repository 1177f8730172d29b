"""Settings for the HTTP server."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from metasearch.config.base import Count, Flag, Positive, Rate, Settings
from metasearch.config.rerank import RerankSettings
from metasearch.search.settings import parse_site


class Limits(Settings):
    """Server limits. The error beyond a limit names its flag.

    Attributes:
        reload: seconds between two looks at the index.
    """

    inputs: Annotated[Positive, Flag(name="--max-inputs")] = 256
    """Texts of a request."""
    size: Annotated[Positive, Flag(name="--max-bytes")] = 2_000_000
    """Bytes of a request's body."""
    hits: Annotated[Positive, Flag(name="--max-hits")] = 100
    """Passages for each query."""
    waiting: Annotated[Positive, Flag(name="--max-waiting")] = 64
    """Requests that wait; others get 429."""
    timeout: Annotated[Rate, Flag(metavar="SECONDS")] = 30
    """Seconds to wait for the headers of a request, for its body, and for the answer."""
    keep_alive: Annotated[Rate, Flag(metavar="SECONDS")] = 90
    """Seconds to keep a connection without a request; more than the proxy keeps it."""
    batch_wait: Annotated[float, Field(ge=0, le=1000), Flag(metavar="MILLISECONDS")] = 5
    """Time that a text waits for texts of other requests, to share a batch."""
    batch_texts: Positive = 64
    """Texts in a batch."""
    grace: Annotated[Count, Flag(metavar="SECONDS")] = 10
    """Time to finish running requests when the server stops."""
    reload: Rate = 1.0


class ServerSettings(Settings):
    """Server settings."""

    host: Annotated[str, Flag(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 takes a free one."""
    hosts: Annotated[tuple[str, ...], Flag(name="--allow-host", metavar="NAMES", comma=True)] = ()
    """Further host names of the server, such as search.example.org or *.example.org."""
    token_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """File with a token that requests must bring as authorization: Bearer TOKEN."""
    name: Annotated[str | None, Flag(metavar="NAME")] = None
    """Name of the model in /v1/models; by default the encoder's."""
    site: Annotated[Annotated[str, AfterValidator(parse_site)] | None, Flag(metavar="URL")] = None
    """Address of the root of the documents, such as https://help.example.org/; by default the index's."""
    rerank: RerankSettings = RerankSettings()
    limits: Limits = Limits()
