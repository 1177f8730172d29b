"""Licences as cards state them: read where they are declared, and `unknown` everywhere else."""

import re
from pathlib import Path

from metasearch.errors import ConfigError, MetasearchError
from metasearch.publish.header import read_header

UNKNOWN = "unknown"
"""Of what nobody said the licence of; model hubs know the word."""
CARD = "README.md"

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]{1,63}")


def require_identifier(licence: str) -> str:
    """Return a licence as model hubs write it; `ConfigError` for text that cannot be one."""
    if not _IDENTIFIER.fullmatch(licence):
        near = re.sub(r"[\s_]+", "-", licence.strip().lower())
        hint = f" Did you mean '{near}'?" if _IDENTIFIER.fullmatch(near) else ""
        raise ConfigError(
            f"licence '{licence}': expected an identifier of model hubs, such as apache-2.0 or cc-by-sa-4.0.{hint}"
        )
    return licence


def licence_of(folder: Path) -> str:
    """Return the licence that the card of a model in a folder states; `unknown` where it states none."""
    return licence_in(folder / CARD)


def licence_in(card: Path) -> str:
    """Return the licence that a card states, several with commas between; `unknown` where it states none."""
    try:
        stated = read_header(card).get("license") if card.is_file() else None
    except MetasearchError:
        return UNKNOWN  # of another's card, which is no fault of this model's
    named = stated if isinstance(stated, list) else [stated]
    return ", ".join(each for each in named if isinstance(each, str) and each) or UNKNOWN
