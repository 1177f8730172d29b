"""The file `metasearch.json` in a folder with an ONNX graph."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from metasearch.config.base import FrozenConfig
from metasearch.config.recipe import MaxLength, Role
from metasearch.errors import EncoderError
from metasearch.io import read_bytes

FILE = "metasearch.json"


class Facts(FrozenConfig):
    """What a program needs to know to use the graph, and where it comes from.

    Attributes:
        format: what kind of file it is.
        layout: number of this set of keys.
        name: of the encoder.
        fingerprint: of the encoder; see `metasearch.encoders.fingerprint`.
        precision: of the graph's weights and products.
        model: path of the graph in the folder, with slashes.
        dimension: numbers of a vector.
        longest: tokens that the graph can take; None where there is no end.
        lengths: role → tokens at which its texts are cut.
        prompts: role → what is put before its texts.
        difference: largest absolute difference between numbers of the graph's vectors in float32 and the encoder's.
        versions: of libraries that made it.
        results: scores of the encoder and of what was made of it.
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
