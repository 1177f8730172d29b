"""What a model's folder holds: the files that go to a hub, and those that must not go unless they are allowed."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from safetensors import safe_open

from metasearch.errors import ConfigError, EncoderError, RunFolderError, first_line, quoted
from metasearch.files import read_bytes
from metasearch.publish.licence import CARD
from metasearch.runs import checksums
from metasearch.runs.folder import CONFIG

MODULES = "modules.json"
_WEIGHTS = (".safetensors", ".onnx")
_NAMES = (
    CARD, checksums.SUMS, "LICENSE*", "LICENCE*", "NOTICE*", MODULES, "config.json",
    "config_sentence_transformers.json", "sentence_*_config.json", "data_config.json", "generation_config.json",
    "preprocessor_config.json", "tokenizer*.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt",
    "*.model", "*.spm", "*.safetensors", "*.safetensors.index.json", "*.onnx", "*.onnx_data",
    "neutral.json", "languages.svg",
)  # fmt: skip
"""Names of the files that make a model, of any family, and of what metasearch writes beside them."""
_FOLDERS = ("onnx",)
"""Folders of a model beside those of its modules."""
_LISTED = 8
"""Files that an error names, at most."""


@dataclass(frozen=True)
class File:
    """A file that goes: its path in the model's folder, with slashes, and its size in bytes."""

    name: str
    path: Path
    size: int


def contents(folder: Path, allow: Sequence[str] = ()) -> tuple[File, ...]:
    """Return the files of a model by name, the folder checked.

    Args:
        folder: of the model.
        allow: patterns of further files that may go, such as `*.png` or `eval/*`.

    Raises:
        ConfigError: the folder holds files that are not a model's, or a pattern matches none.
        EncoderError: it is no model, or its weights are damaged.
        RunFolderError: it cannot be read, or a file is not as it was written by `SHA256SUMS`.
    """
    own = _module_folders(folder)
    found = sorted(_walk(folder), key=lambda path: path.as_posix())
    names = {path.relative_to(folder).as_posix(): path for path in found}
    _require_used(allow, names)
    foreign = [name for name, path in names.items() if not _belongs(name, path, own) and not _allowed(name, allow)]
    if foreign:
        raise ConfigError(_refusal(folder, foreign))
    if CARD not in names:
        raise EncoderError(without_card(folder))
    _require_weights(folder, [path for path in found if path.suffix in _WEIGHTS])
    _require_unchanged(folder)
    return tuple(File(name, path, path.stat().st_size) for name, path in names.items())


def model_of(folder: Path) -> Path:
    """Return the folder of a model that a path names: itself, or that of a run."""
    return folder / "model" if (folder / CONFIG).is_file() else folder


def without_card(folder: Path) -> str:
    """Return that the folder of a model has no card, and how to write one."""
    how = "write the file: the lines '---', 'license: ID' and '---', and below them a description of the model"
    return f"{folder} has no {CARD}, its model card; {how}"


def _module_folders(folder: Path) -> set[str]:
    """Return the folders of a model's modules; `EncoderError` where it is no model."""
    path = folder / MODULES
    if not folder.is_dir():
        raise EncoderError(f"{folder}: no such folder; name that of a model, such as runs/shop/model")
    if not path.is_file():
        inside = ", ".join(sorted(each.name for each in folder.iterdir())[:_LISTED]) or "nothing"
        raise EncoderError(f"{folder} is no model of sentence-transformers: it has no {MODULES}; it holds {inside}")
    try:
        modules = json.loads(read_bytes(path))
        return {str(each["path"]) for each in modules} | set(_FOLDERS)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EncoderError(f"{path}: no list of modules: {first_line(error)}") from None


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, and links, which are not followed."""
    try:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                yield from _walk(path)
            else:
                yield path
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be read: {error.strerror}") from None


def _belongs(name: str, path: Path, folders: set[str]) -> bool:
    """Return whether a file is a model's: by its name, in the model's folder or in that of a module, and no link."""
    place = PurePosixPath(name)
    inside = place.parent.as_posix() in folders or len(place.parts) == 1
    return inside and not path.is_symlink() and any(fnmatch(place.name, pattern) for pattern in _NAMES)


def _allowed(name: str, allow: Sequence[str]) -> bool:
    # A repository of its own is nothing that any pattern means.
    return ".git" not in PurePosixPath(name).parts and any(fnmatch(name, pattern) for pattern in allow)


def _require_used(allow: Sequence[str], names: Sequence[str] | dict[str, Path]) -> None:
    for pattern in allow:
        if not any(fnmatch(name, pattern) for name in names):
            raise ConfigError(f"--allow {pattern}: no file of the model matches it")


def _refusal(folder: Path, foreign: Sequence[str]) -> str:
    shown = ", ".join(foreign[:_LISTED]) + (f" and {len(foreign) - _LISTED} more" if len(foreign) > _LISTED else "")
    first = re.sub(r"([*?\[])", r"[\1]", foreign[0])
    return (
        f"{folder} holds files that are not a model's, and would be published with it: {shown}. Take them away, or "
        f"allow each by its name or a pattern, such as --allow {quoted(first)}"
    )


def _require_weights(folder: Path, weights: Sequence[Path]) -> None:
    """Raise `EncoderError` where there are no weights, or a file of them is cut off or damaged in its header."""
    if not weights:
        raise EncoderError(f"{folder} has no weights: no *.safetensors and no *.onnx in it")
    for path in weights:
        if path.suffix != ".safetensors":
            continue
        try:
            with safe_open(path, framework="numpy") as file:
                file.keys()
        except Exception as error:  # the library has an error of its own
            raise EncoderError(f"{path}: damaged weights: {first_line(error)}") from None


def _require_unchanged(folder: Path) -> None:
    """Raise `RunFolderError` where the model, or the run that it is of, is not as its hashes say."""
    checksums.require_unchanged(folder)
    above = folder.absolute().parent
    if folder.absolute().name == "model" and (above / CONFIG).is_file():
        checksums.require_unchanged(above)
