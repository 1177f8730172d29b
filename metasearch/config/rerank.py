"""Settings for a cross-encoder that reranks."""

from typing import Annotated

from pydantic import Field

from metasearch.config.base import Flag, Settings


class RerankSettings(Settings):
    """A cross-encoder that reranks the best passages of a search."""

    model: Annotated[str | None, Flag(name="--rerank", metavar="MODEL")] = None
    """Rerank with this cross-encoder, a local folder or hub name."""
    top: Annotated[int, Field(ge=1, le=1000), Flag(name="--rerank-top")] = 100
    """Passages that the cross-encoder reads for each query, 1,000 at most."""
