"""Cuts documents into passages as an encoder reads them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from metasearch.config.index import PASSAGE_LENGTH, IndexSettings
from metasearch.config.recipe import Role
from metasearch.data.documents.chunking import OTHER_COLUMNS, Settings
from metasearch.data.documents.languages import detector
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import report_progress
from metasearch.errors import ConfigError
from metasearch.runs.callbacks import Callback

ROLE: Role = "candidate"
"""In which passages are encoded; queries are questions."""


def resolved(settings: IndexSettings, encoder: Encoder) -> IndexSettings:
    """Return settings with the passage length; `ConfigError` for values that do not fit together or the encoder."""
    limit = encoder.limit(ROLE)
    length = min(PASSAGE_LENGTH, limit) if settings.length is None else settings.length
    if length > limit:
        raise ConfigError(
            f"length {length}: encoder '{encoder.name}' reads {limit} tokens of a passage; the rest of a longer "
            "passage could not be found"
        )
    if settings.overlap >= length:
        raise ConfigError(f"overlap {settings.overlap}: expected less than the {length} tokens of a passage")
    if settings.column in OTHER_COLUMNS:
        raise ConfigError(f"column '{settings.column}' cannot be the column with the text")
    return settings.model_copy(update={"length": length})


def cutting(settings: IndexSettings, encoder: Encoder) -> Settings:
    """Return the chunking settings; `ConfigError` for a value out of range or an undetectable language."""
    assert settings.length is not None
    chosen = () if settings.detect == "all" else settings.detect
    return Settings(
        limit=settings.length,
        length=_counter(encoder, settings.length),
        overlap=settings.overlap,
        column=settings.column,
        titles=settings.titles,
        names=settings.names,
        language=settings.language,
        detect=None if chosen is None else detector(chosen),
    )


@contextmanager
def encoding(
    encoder: Encoder, what: str, callback: Callback, done: int = 0, total: int | None = None
) -> Iterator[None]:
    """Report encoding to a callback, and clear the token cache at the end."""
    try:
        with report_progress(encoder, lambda now, all_now: callback.on_encode(what, done + now, total or all_now)):
            yield
    finally:
        encoder.forget()


def _counter(encoder: Encoder, limit: int) -> Callable[[str], int]:
    """Return a function that counts a text's tokens, up to one more than the limit."""
    prompt = encoder.prompt(ROLE)

    def count(text: str) -> int:
        # Not `encoder.lengths`, which remembers each text, and here most are parts of others.
        (tokens,) = encoder.input.tokenise([prompt + text], limit + 1)["input_ids"]
        return len(tokens)

    return count
