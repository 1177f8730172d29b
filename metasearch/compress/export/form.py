"""The form in which an encoder is exported, and the file `metasearch.json` in a folder with an ONNX graph."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from metasearch.config.base import Flag, FrozenConfig, Positive, Settings
from metasearch.config.extras import install_line
from metasearch.config.recipe import MaxLength, Role
from metasearch.errors import ConfigError, EncoderError
from metasearch.io import read_bytes

_WRITES = ("onnx", "onnxscript", "onnxruntime")
"""Packages that make or check an ONNX graph."""


class Form(Settings):
    """The form in which an encoder is written."""

    plain: Annotated[bool, Flag(name="--sentence-transformers")] = False
    """Standard sentence-transformers model, full size."""
    onnx: bool = False
    """ONNX graph for onnxruntime and transformers.js; needs no torch."""
    int8: bool = False
    """Weights in eight bits, a quarter of the size; --onnx also needs --task."""
    static: Annotated[bool, Flag(name="--static-embeddings")] = False
    """Word embeddings alone; a text is the mean of its words."""
    dimensions: Annotated[Positive | None, Flag(metavar="N")] = None
    """Keep the first N dimensions, normalised."""
    texts: Annotated[tuple[Path, ...], Flag(metavar="PATH")] = ()
    """Keep the N principal directions of these texts instead: files or folders; repeatable."""

    @property
    def changes(self) -> bool:
        """Whether vectors are others than the encoder's before anything is written."""
        return self.static or self.dimensions is not None

    @property
    def name(self) -> str:
        """`plain`, `int8`, `onnx` or `onnx int8`."""
        parts = [name for name, wanted in (("onnx", self.onnx), ("int8", self.int8)) if wanted]
        return " ".join(parts) or "plain"

    def check(self, scored: bool) -> None:
        """Raise `ConfigError` where options contradict or packages are missing; `scored`: a task measures the loss."""
        if self.plain and (self.onnx or self.int8):
            other = "--onnx" if self.onnx else "--int8"
            raise ConfigError(f"--sentence-transformers and {other} cannot be combined")
        if not (self.plain or self.onnx or self.int8 or self.static):
            raise ConfigError("choose a form: --sentence-transformers, --onnx, --int8 or --static-embeddings")
        if self.texts and self.dimensions is None:
            raise ConfigError("--texts needs --dimensions, the number of dimensions to keep")
        if self.onnx and self.int8 and not scored:
            raise ConfigError("--onnx --int8 costs accuracy: pass --task to measure it")
        if self.onnx:
            require(*_WRITES)


def require(*modules: str) -> None:
    """Raise `ConfigError` with an install command if the extra `onnx` is incomplete."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ConfigError(f"ONNX needs the package {' and '.join(missing)}: {install_line('onnx')}")


FILE = "metasearch.json"


class Facts(FrozenConfig):
    """Content of `metasearch.json`: how to use the graph, and its origin.

    Attributes:
        layout: number of this set of keys.
        precision: of the graph's weights and products.
        model: path of the graph in the folder, with slashes.
        dimension: numbers of a vector.
        longest: tokens that the graph can take; None without a limit.
        lengths: role → tokens at which its texts are truncated.
        difference: largest absolute difference between the graph in float32 and the encoder.
        versions: of libraries that made it.
        results: scores of the encoder before and after.
    """

    format: Literal["metasearch-onnx"] = "metasearch-onnx"
    layout: Literal[1] = 1
    name: str
    fingerprint: str
    precision: Literal["fp32", "int8"]
    model: str
    dimension: int = Field(ge=1)
    longest: int | None
    lengths: MaxLength
    prompts: dict[Role, str]
    difference: float
    versions: dict[str, str]
    results: tuple[dict[str, Any], ...] = ()

    def text(self) -> str:
        """Return the content of the file."""
        return json.dumps(self.model_dump(), ensure_ascii=False, indent=1) + "\n"


def is_exported(folder: Path) -> bool:
    """Return whether a folder has such a file."""
    return (folder / FILE).is_file()


def read_facts(folder: Path) -> Facts:
    """Return the facts in a folder; `EncoderError` if the file is missing, damaged or has another layout."""
    path = folder / FILE
    try:
        return Facts.model_validate_json(read_bytes(path))
    except OSError as error:
        raise EncoderError(f"{path}: {error.strerror or error}") from error
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, wrong["loc"])) or "the file"
        raise EncoderError(f"{path}: {place}: {wrong['msg']}; it was changed, or written by another version") from None
