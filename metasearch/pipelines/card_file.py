"""Reads model cards, the README.md of a model. Never imports torch."""

import re
from pathlib import Path

from huggingface_hub import ModelCard

from metasearch.errors import ConfigError, DataError, MetasearchError, RunFolderError, first_line
from metasearch.io import read_bytes
from metasearch.runs.folder import CONFIG

CARD = "README.md"
UNKNOWN = "unknown"
"""Licence of a model until its owner states one; model hubs know the word."""
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]{1,63}")


def load_card(path: Path) -> ModelCard:
    """Return a card; `DataError` if it cannot be read as one. Uses no network."""
    try:
        # ModelCard.load would look for a missing file on the hub.
        return ModelCard(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # the YAML library and the card raise errors of their own
        raise DataError(f"{path}: no model card: its header cannot be read: {first_line(error)}") from None


def licensed_card(folder: Path, licence: str | None) -> tuple[Path, ModelCard]:
    """Return the file and the card of a model or of a run's model, with another licence if one is given.

    Raises:
        RunFolderError: there is no card.
        ConfigError: the licence is no identifier.
    """
    model = folder / "model" if (folder / CONFIG).is_file() else folder
    path = model / CARD
    if not path.is_file():
        raise RunFolderError(_missing_card(model) if model.is_dir() else f"{model} does not exist")
    card = load_card(path)
    if licence is not None:
        _require_identifier(licence)
        card.data["license"] = licence
    return path, card


def _missing_card(folder: Path) -> str:
    """Return the error text for a model without a card."""
    how = "write the file: the lines '---', 'license: ID' and '---', and below them a description of the model"
    return f"{folder} has no {CARD}, its model card; {how}"


def read_title(path: Path) -> str:
    """Return the first heading of a card, or an empty text; `DataError` as `load_card`."""
    found = re.search(r"^# +(.+?) *$", load_card(path).text, re.M)
    return found[1] if found else ""


def read_licence(path: Path) -> str:
    """Return the licences that a card states; `unknown` if there are none or the card is damaged."""
    try:
        stated = load_card(path).data.get("license") if path.is_file() else None
    except MetasearchError:
        return UNKNOWN
    named = stated if isinstance(stated, list) else [stated]
    return ", ".join(each for each in named if isinstance(each, str) and each) or UNKNOWN


def _require_identifier(licence: str) -> None:
    """Raise `ConfigError` for text that cannot be a licence identifier of model hubs."""
    if not _IDENTIFIER.fullmatch(licence):
        near = re.sub(r"[\s_]+", "-", licence.strip().lower())
        hint = f" Did you mean '{near}'?" if _IDENTIFIER.fullmatch(near) else ""
        raise ConfigError(
            f"licence '{licence}': expected an identifier of model hubs, such as apache-2.0 or cc-by-sa-4.0.{hint}"
        )
