"""The form in which an encoder is exported, and valid combinations of options."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from metasearch.config.base import Flag, Positive, Settings
from metasearch.config.extras import install_line
from metasearch.errors import ConfigError

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
        """Raise `ConfigError` where wishes do not go together, or packages are missing.

        Args:
            scored: whether there is a task that shows what is lost.
        """
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
