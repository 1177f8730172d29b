"""The manifest of an index: what belongs to it. Its renaming is the moment from which an index has what was written."""

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from metasearch.data.formats.arrays import ArrayFile
from metasearch.errors import ConfigError, EncoderError, RunFolderError
from metasearch.io import atomic_write, read_bytes
from metasearch.retrieval.index.arrays import LOCATIONS, OWN, SEGMENTS

FILE = "manifest.json"
FORMAT = "metasearch index"
SCHEMA = 2
"""Changes whenever an index that this release writes could not be read by the one before, or the other way round."""
_SEAL = "sha256"


@dataclass(frozen=True)
class Kind:
    """What an index is of, and what never changes in it.

    Attributes:
        encoder: name of the encoder.
        fingerprint: hash of everything that its vectors depend on.
        dimension: of the vectors.
        settings: of whoever cuts and encodes texts, such as the length of passages; JSON.
    """

    encoder: str
    fingerprint: str
    dimension: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def require_encoder(self, where: Path, fingerprint: str, dimension: int, name: str) -> None:
        """Raise `EncoderError` where vectors of another encoder are brought."""
        if (self.fingerprint, self.dimension) != (fingerprint, dimension):
            raise EncoderError(
                f"{where}: its vectors are of encoder '{self.encoder}' ({self.fingerprint}, {self.dimension} "
                f"dimensions), not of '{name}' ({fingerprint}, {dimension} dimensions); take that encoder, or make an "
                "index for this one in another folder"
            )

    def require_settings(self, where: Path, other: "Kind") -> None:
        """Raise `ConfigError` where an index is to be continued with other settings."""
        ours, theirs = _json(self.settings), _json(other.settings)
        for name in sorted(ours.keys() | theirs.keys()):
            before, now = ours.get(name), theirs.get(name)
            if before != now:
                raise ConfigError(
                    f"{where}: it was made with {name} {json.dumps(before)}, not {json.dumps(now)}; leave that as it "
                    "was, or make an index in another folder"
                )


@dataclass(frozen=True)
class Part:
    """A segment as the manifest names it: its file, and how many rows it has."""

    stored: ArrayFile
    rows: int


@dataclass(frozen=True)
class Manifest:
    """What belongs to an index.

    Attributes:
        kind: what it is of.
        segments: in the order in which locations number them.
        locations: their file; None of an index that was never finished.
        arrays: file of the caller's own arrays; None where there are none.
    """

    kind: Kind
    segments: Sequence[Part] = ()
    locations: ArrayFile | None = None
    arrays: ArrayFile | None = None

    def write(self, folder: Path) -> None:
        """Put it in the place of the one before, whole or not at all; `RunFolderError` where that fails."""
        tree = _json({"format": FORMAT, "schema": SCHEMA, **asdict(self)})
        atomic_write(folder / FILE, json.dumps({**tree, _SEAL: _hash(tree)}, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read it.

        Raises:
            RunFolderError: there is none, it is damaged, or of another release's schema.
        """
        path = folder / FILE
        try:
            content = read_bytes(path)
        except (FileNotFoundError, NotADirectoryError):
            what = "is no index: it has no manifest.json" if folder.exists() else "does not exist"
            raise RunFolderError(f"{folder} {what}; make one with metasearch index DOCS -o {folder}") from None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise
            raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from None
        tree = _unsealed(path, content)
        if tree.get("format") != FORMAT:
            raise RunFolderError(f"{path} is not the manifest of an index")
        if tree.get("schema") != SCHEMA:
            raise RunFolderError(
                f"{path}: it has schema {tree.get('schema')}, and this release of metasearch reads schema {SCHEMA}; "
                "take the release that made it, or make the index anew from the documents in another folder"
            )
        segments = tuple(Part(ArrayFile(**part["stored"]), part["rows"]) for part in tree["segments"])
        locations, arrays = (ArrayFile(**tree[name]) if tree[name] else None for name in ("locations", "arrays"))
        return cls(Kind(**tree["kind"]), segments, locations, arrays)

    @property
    def files(self) -> list[tuple[str, ArrayFile]]:
        """All files of arrays that it names, each with the folder that it is in."""
        others = ((LOCATIONS, self.locations), (OWN, self.arrays))
        named = [(SEGMENTS, part.stored) for part in self.segments]
        return named + [(folder, stored) for folder, stored in others if stored]

    @property
    def sizes(self) -> list[int]:
        """Rows of each segment."""
        return [part.rows for part in self.segments]

    def with_segment(self, part: Part) -> "Manifest":
        """Return it with one more segment."""
        return replace(self, segments=(*self.segments, part))


def _unsealed(path: Path, content: bytes) -> dict[str, Any]:
    """Return what a manifest says; `RunFolderError` where its hash is not that of what it says."""
    try:
        tree = json.loads(content)
        seal = tree.pop(_SEAL)
    except (ValueError, KeyError, TypeError, AttributeError):
        tree, seal = {}, ""
    # The text, too: white space may not differ either, so that no bit is free.
    written = json.dumps({**tree, _SEAL: seal}, ensure_ascii=False, indent=1) + "\n"
    if seal != _hash(tree) or written.encode() != content:
        raise RunFolderError(
            f"{path}: it is damaged or was changed since it was written. Put the file back, or make the index anew "
            "from the documents in another folder"
        )
    return dict(tree)


def _hash(tree: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(tree, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value as it comes back from a file."""
    back: dict[str, Any] = json.loads(json.dumps(value))
    return back
