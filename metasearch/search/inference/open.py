"""Opens a checkpoint to encode with it: from its files where that gives the same bits, else the whole model."""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path

from metasearch.config import registry
from metasearch.config.roles import Role
from metasearch.config.run import Device, EncoderConfig
from metasearch.encoders.device import device_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.search.inference.encoder import StoredEncoder
from metasearch.search.inference.facts import Facts
from metasearch.search.inference.pieces import Pieces

log = logging.getLogger(__name__)

_PIECES = ".npz"
"""Ending of the file with the pieces of a tokenizer, beside the facts."""


def load_reader(
    name: str, device: Device = "auto", prompts: Mapping[Role, str] | None = None, trust_remote_code: bool = False
) -> Encoder:
    """Return an encoder that only encodes; arguments and errors as for `load_encoder`.

    On a CPU a checkpoint in a folder, or a built-in encoder, is opened without its whole model where that gives the
    same bits (`metasearch.search.inference`).
    """
    ref = EncoderConfig.of(name, prompts=prompts or {}, trust_remote_code=trust_remote_code)
    whole = partial(load_encoder, ref, device=device)
    folder = None if trust_remote_code or device_of(device).type != "cpu" else _folder(ref.name)
    return whole() if folder is None else _open_stored(ref.name, folder, ref.prompts, whole)


def _folder(name: str) -> Path | None:
    """Return the folder of a checkpoint; None of one that is not in a folder."""
    if name not in registry.names("encoders"):
        # Of another folder every file would be read before it is refused.
        found = any((Path(name) / file).is_file() for file in ("modules.json", "config.json"))
        return Path(name) if found else None
    find = getattr(registry.load("encoders", name), "folder", None)
    return find() if find else None


def _open_stored(name: str, folder: Path, prompts: Mapping[Role, str], whole: Callable[[], Encoder]) -> Encoder:
    """Return an encoder that only encodes; `whole` opens the whole model, with these prompts."""
    stored = partial(StoredEncoder, name, folder)
    place = Facts.place_of(folder, prompts)
    if facts := Facts.recall(place):
        for line in facts.warnings:
            log.warning("%s", line)
        return stored(facts, pieces=Pieces.read(place.with_suffix(_PIECES)) if place else None)
    from metasearch.search.inference.survey import survey

    with _warnings() as heard:
        encoder = whole()
    found = survey(encoder, folder, heard, stored)
    if found is None:
        return encoder
    tokenizer = found.reader.fast_tokenizer
    if place and tokenizer and (pieces := Pieces.of(tokenizer)):
        pieces.write(place.with_suffix(_PIECES))
    found.facts.remember(place)
    return found


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect the warnings about encoders inside the context, which are logged as well."""
    heard, lines, logger = BufferingHandler(sys.maxsize), list[str](), logging.getLogger("metasearch.encoders")
    heard.setLevel(logging.WARNING)
    logger.addHandler(heard)
    try:
        yield lines
    finally:
        logger.removeHandler(heard)
        lines += [record.getMessage() for record in heard.buffer]
