"""Cuts documents into passages as an encoder reads them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from metasearch.config.roles import Role
from metasearch.data.languages import detectable, detector
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError
from metasearch.search.documents.chunking import OTHER_COLUMNS, Settings
from metasearch.search.settings import ALWAYS, IndexSettings

_LENGTH = 128
"""Tokens of a passage by default, if the encoder reads so many."""
ROLE: Role = "candidate"
"""In which passages are encoded; queries are questions."""


def cutting(settings: IndexSettings, encoder: Encoder) -> tuple[IndexSettings, Settings]:
    """Return settings with the passage length, and the chunking settings.

    `ConfigError` for values that do not fit together or the encoder, and for an undetectable language.
    """
    limit = encoder.limit(ROLE)
    length = min(_LENGTH, limit) if settings.length is None else settings.length
    if length > limit:
        raise ConfigError(
            f"length {length}: encoder '{encoder.name}' reads {limit} tokens of a passage; the rest of a longer "
            "passage could not be found"
        )
    if settings.overlap >= length:
        raise ConfigError(f"overlap {settings.overlap}: expected less than the {length} tokens of a passage")
    if settings.column in OTHER_COLUMNS:
        raise ConfigError(f"column '{settings.column}' cannot be the column with the text")
    lengths = _counter(encoder, length)
    cut = replace(reading(settings), limit=length, lengths=lengths, overlap=settings.overlap)
    return settings.model_copy(update={"length": length}), cut


def reading(settings: IndexSettings) -> Settings:
    """Return how documents are read, with passages of the default length."""
    same = settings.model_dump(include={"column", "titles", "names", "language", "keep_repeated", "translations"})
    if settings.detect is None:
        return Settings(**same)
    languages = [] if settings.detect == "all" else [tag for tag in settings.detect if tag != ALWAYS]
    always = ALWAYS in settings.detect
    return Settings(**same, detect=detector(languages), detectable=detectable(languages), detect_always=always)


def _counter(encoder: Encoder, limit: int) -> Callable[[Sequence[str]], list[int]]:
    """Return a function that counts the tokens of texts, each up to one more than the limit."""
    prompt = encoder.prompt(ROLE)

    def count(texts: Sequence[str]) -> list[int]:
        # Not `encoder.lengths`, which remembers each text, and here most are parts of others.
        return [len(row) for row in encoder.reader.tokenise([prompt + text for text in texts], limit + 1)["input_ids"]]

    return count
