"""Opens a checkpoint to encode with it: from its files where that gives the same bits, else the whole model."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.stored.encoder import StoredEncoder
from metasearch.encoders.stored.facts import Facts, place_of, recall, remember

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
    place = place_of(folder, prompts)
    if facts := recall(place):
        for line in facts.warnings:
            log.warning("%s", line)
    else:
        encoder, facts = _survey(folder, whole)
        if facts is None:
            return encoder
        remember(place, facts)
    return StoredEncoder(name, folder, facts, whole)


def _survey(folder: Path, whole: Callable[[], Encoder]) -> tuple[Encoder, Facts | None]:
    from metasearch.encoders.stored.survey import facts_of

    heard = _Warnings()
    logger = logging.getLogger("metasearch.encoders")
    logger.addHandler(heard)
    try:
        encoder = whole()
    finally:
        logger.removeHandler(heard)
    return encoder, facts_of(encoder, folder, heard.lines)


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        self.lines.append(record.getMessage())
