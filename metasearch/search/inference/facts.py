"""What has to be known of a checkpoint to encode with it, found out when it was opened in whole.

Facts are remembered in the user's cache by the folder, the content of its files and the releases of the libraries.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from metasearch.config.roles import Role
from metasearch.encoders.low.network import NetworkFacts
from metasearch.errors import EncoderError, RunFolderError
from metasearch.io import atomic_write, cache_folder, digests
from metasearch.runs.versions import installed

_LIBRARIES = ("metasearch-encoders", "torch", "transformers", "sentence-transformers", "tokenizers")
_FORM = 2
"""Counts the ways in which facts were written down."""


@dataclass(frozen=True)
class InputFacts:
    """How the tokenizer is used."""

    columns: tuple[str, ...]
    padding: Mapping[str, int]
    """What pads each column."""
    left: bool
    """Whether texts are cut on their left side."""
    special: tuple[int, ...]
    """Numbers of its special tokens."""
    longest: int
    """Tokens that the network can read."""


@dataclass(frozen=True)
class Facts:
    """All of an encoder that is not in its tokenizer or its weights."""

    place: str
    """Folder of the transformer, relative to the checkpoint's folder."""
    fingerprint: str
    dimension: int
    neutral: bool
    """Whether it ends in a language-neutral projection."""
    prompts: Mapping[str, str]
    default_prompt_name: str | None
    lengths: Mapping[Role, int]
    """Those that it was saved with."""
    warnings: Sequence[str]
    """What is said whenever it is opened."""
    network: NetworkFacts
    input: InputFacts

    @staticmethod
    def place_of(folder: Path, prompts: Mapping[Role, str]) -> Path | None:
        """Return the file for the facts of a checkpoint with prompts in place of its own; None without a cache."""
        try:
            # With its name, which warnings have.
            about = [_FORM, str(folder), digests(folder), {name: installed(name) for name in _LIBRARIES}, dict(prompts)]
            key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
            return cache_folder() / "encoders" / f"{key[:32]}.json"
        except (OSError, EncoderError):
            return None

    @classmethod
    def recall(cls, place: Path | None) -> Self | None:
        """Return the facts that are remembered; None without any, or where the file is damaged."""
        try:
            return TypeAdapter(cls).validate_json(place.read_bytes()) if place else None
        except (OSError, ValueError):
            return None

    def remember(self, place: Path | None) -> None:
        """Write them down; a cache that cannot be written remembers nothing."""
        if place is not None:
            with suppress(RunFolderError):
                atomic_write(place, json.dumps(asdict(self), indent=2))
