"""What would be published, to be looked at before it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id

from metasearch.errors import ConfigError
from metasearch.publish.contents import File, contents, model_of
from metasearch.publish.header import title_of
from metasearch.publish.licence import CARD, licence_of
from metasearch.runs.markdown import markdown

MAIN = "main"


@dataclass(frozen=True)
class Plan:
    """A model, and where it would go.

    Attributes:
        folder: of the model.
        files: all that goes.
        name: `OWNER/NAME` on the hub.
        private: whether a new repository is only its owner's to see.
        revision: branch, made where there is none.
        endpoint: address of the hub.
        title: of the model's card.
        licence: that the card states.
    """

    folder: Path
    files: tuple[File, ...]
    name: str
    private: bool
    revision: str
    endpoint: str
    title: str
    licence: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def address(self) -> str:
        """Where the model is found once it is there."""
        return f"{self.endpoint}/{self.name}"

    def tree(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        files = [{"name": file.name, "bytes": file.size} for file in self.files]
        facts = {key: getattr(self, key) for key in ("name", "address", "revision", "private", "title", "licence")}
        return {**facts, "model": str(self.folder), "files": files, "bytes": self.size}

    def shown(self) -> str:
        """Return all of it in Markdown."""
        lines = [[file.name, f"{file.size:,}"] for file in self.files]
        sees = "private: its owner alone sees it" if self.private else "public: everybody can read it"
        facts = [
            ["to", f"{self.address}, branch {self.revision}"],
            ["visible", f"{sees}, if it is new; one that is there stays as it is"],
            ["card", self.title or "without a title"],
            ["licence", self.licence],
        ]
        table = markdown(["file", "bytes"], [*lines, [f"{len(lines)} files", f"{self.size:,}"]])
        return f"{table}\n\n{markdown(['push', ''], facts, left=2)}"


def plan(folder: Path, name: str, private: bool = False, revision: str = MAIN, allow: Sequence[str] = ()) -> Plan:
    """Return what would go where; asks no network.

    Args:
        folder: of a model, or of a run with one.
        name: `OWNER/NAME` on the hub.
        private: whether a new repository is to be private.
        revision: branch.
        allow: patterns of files that may go beside the model's own.

    Raises:
        ConfigError: the name is none, or the folder holds files that are not a model's.
        DataError: the card cannot be read.
        EncoderError: the folder is no model.
        RunFolderError: a file was changed since it was written.
    """
    _require_name(name)
    model = model_of(folder)
    files = contents(model, allow)
    title = title_of(model / CARD)
    return Plan(model, files, name, private, revision, constants.ENDPOINT, title, licence_of(model))


def _require_name(name: str) -> None:
    owner, slash, _ = name.partition("/")
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"'{name}' is no name on a hub: {str(error).splitlines()[0]}") from None
    if not slash:
        raise ConfigError(f"'{owner}': say whose it is, too, as OWNER/{owner}")
