"""Opens a checkpoint to encode with it: from its files where that gives the same bits, else the whole model."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.stored.encoder import StoredEncoder
from metasearch.encoders.stored.facts import place_of, recall, remember

log = logging.getLogger(__name__)


def open_stored(name: str, folder: Path, prompts: Mapping[Role, str], whole: Callable[[], Encoder]) -> Encoder:
    """Return an encoder that only encodes.

    Args:
        name: name of the encoder in results.
        folder: folder of its checkpoint.
        prompts: what stands before the texts of some roles, in place of the encoder's own prompts.
        whole: opens the whole model, with these prompts.

    Raises:
        EncoderError: as `whole`.
    """
    stored = partial(StoredEncoder, name, folder, whole=whole)
    place = place_of(folder, prompts)
    if facts := recall(place):
        for line in facts.warnings:
            log.warning("%s", line)
        return stored(facts)
    from metasearch.encoders.stored.survey import survey

    with _warnings() as heard:
        encoder = whole()
    found = survey(encoder, folder, heard, stored)
    if found is None:
        return encoder
    remember(place, found.facts)
    return found


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect the warnings about encoders inside the context, which are logged as well."""
    heard, logger = _Warnings(), logging.getLogger("metasearch.encoders")
    logger.addHandler(heard)
    try:
        yield heard.lines
    finally:
        logger.removeHandler(heard)


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        self.lines.append(record.getMessage())
