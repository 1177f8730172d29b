"""The card of a model that is there already: its header and its title."""

import re
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from metasearch.errors import DataError, first_line
from metasearch.files import read_bytes

_TITLE = re.compile(r"^# +(.+?) *$", re.M)


def load_card(path: Path) -> ModelCard:
    """Return a card; `DataError` where it cannot be read as one. Uses no network."""
    try:
        # From the text, as a path that is missing would be asked for on the hub.
        return ModelCard(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # the YAML library and the card raise errors of their own
        raise DataError(f"{path}: no model card: its header cannot be read: {first_line(error)}") from None


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a card as a dictionary; `DataError` as `load_card`."""
    header: dict[str, Any] = load_card(path).data.to_dict()  # type: ignore[no-untyped-call]
    return header


def title_of(path: Path) -> str:
    """Return the first heading of a card; empty where it has none. `DataError` as `load_card`."""
    found = _TITLE.search(load_card(path).text)
    return found[1] if found else ""
