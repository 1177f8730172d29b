"""Settings of `compress` and `export`, checked as far as possible without the encoder."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal, get_args

from metasearch.config.base import Flag, Positive, Seed, Settings
from metasearch.config.extras import install_line
from metasearch.errors import ConfigError, require_known

Initial = Literal["svd", "random"]
"""Initial weights of a bottleneck: the best approximation of the word table, or PyTorch's defaults, as in the paper."""


class CompressSettings(Settings):
    """How to compress an encoder."""

    bottleneck: Annotated[Positive | None, Flag(metavar="K")] = None
    """Columns of the factorised embedding matrix."""
    recurrent: Annotated[Positive | None, Flag(metavar="M")] = None
    """Layers to keep, the first of the encoder's."""
    repeats: Annotated[Positive | None, Flag(metavar="R")] = None
    """Passes through the recurrent layers; by default depth stays."""
    layers: int | tuple[int, ...] | None = None
    """Layers to keep: how many, from the first to the last at equal distances, or which, such as 1,4,7."""
    texts: Annotated[tuple[Path, ...], Flag(metavar="PATH")] = ()
    """Texts that count words for --bottleneck: files or folders; repeatable."""
    initial: Annotated[Initial, Flag(name="--init")] = "svd"
    """Initial bottleneck: the encoder's embedding matrix, or fresh weights as in the paper."""
    trim: Annotated[tuple[Path, ...], Flag(name="--trim-vocab", metavar="PATH")] = ()
    """Texts whose vocabulary is kept: files, or folders of .txt, .tsv and Moses files; repeatable."""
    vocabulary: Annotated[Positive | None, Flag(metavar="N")] = None
    """Most frequent tokens of --trim-vocab to keep; rare words are split into smaller tokens."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed of fresh weights."""

    @property
    def shrinks(self) -> bool:
        """Whether the student has an architecture of metasearch; other options leave a standard model."""
        return any(value is not None for value in (self.bottleneck, self.recurrent, self.repeats))

    @property
    def weighs_words(self) -> bool:
        """Whether texts weight the words of a bottleneck."""
        return self.bottleneck is not None and self.initial == "svd"

    def check(self, writes: bool = True) -> None:
        """Raise `ConfigError` for contradictory options, and with `writes` if there is nothing to do."""
        if self.vocabulary is not None and not self.trim:
            raise ConfigError(f"--vocabulary {self.vocabulary} needs --trim-vocab with texts, whose tokens are counted")
        if writes and not self.shrinks and not self.trim and self.layers is None:
            raise ConfigError("nothing to compress: pass --bottleneck, --recurrent, --layers or --trim-vocab")
        if self.texts and not self.weighs_words:
            raise ConfigError("--texts needs --bottleneck with --init svd")
        if self.repeats is not None and self.recurrent is None:
            raise ConfigError(f"repeats {self.repeats}: needs the number of recurrent layers")
        check_initial(self.initial, self.bottleneck)


def check_initial(initial: str, bottleneck: int | None) -> None:
    """Raise `ConfigError` for unknown initial weights, or without a bottleneck to initialise."""
    require_known("initial", initial, get_args(Initial))
    if initial == "random" and bottleneck is None:
        raise ConfigError("initial: random needs a bottleneck; without one, the assistant's embedding matrix is kept")


_ONNX = ("onnx", "onnxscript", "onnxruntime")
"""Packages that make or check an ONNX graph."""


class Form(Settings):
    """The form in which an encoder is written."""

    plain: Annotated[bool, Flag(name="--sentence-transformers")] = False
    """Standard sentence-transformers model, full size."""
    onnx: bool = False
    """ONNX graph for onnxruntime and transformers.js; needs no torch."""
    int8: bool = False
    """Weights in eight bits, a quarter of the size."""
    dimensions: Annotated[Positive | None, Flag(metavar="N")] = None
    """Keep the first N dimensions, normalised."""
    texts: Annotated[tuple[Path, ...], Flag(metavar="PATH")] = ()
    """Keep the N principal directions of these texts instead: files or folders; repeatable."""

    @property
    def name(self) -> str:
        """`plain`, `int8` or `onnx`."""
        return next((name for name in ("onnx", "int8") if getattr(self, name)), "plain")

    def check(self) -> None:
        """Raise `ConfigError` where options contradict or packages are missing."""
        flags = {"--sentence-transformers": self.plain, "--onnx": self.onnx, "--int8": self.int8}
        chosen = [flag for flag, wanted in flags.items() if wanted]
        if not chosen:
            raise ConfigError("choose a form: --sentence-transformers, --onnx or --int8")
        if self.onnx and self.int8:
            raise ConfigError("--onnx --int8 went: call quantize_dynamic of onnxruntime on the graph of --onnx")
        if len(chosen) > 1:
            raise ConfigError(f"{' and '.join(chosen)} cannot be combined")
        if self.texts and self.dimensions is None:
            raise ConfigError("--texts needs --dimensions, the number of dimensions to keep")
        if self.onnx:
            missing = [module for module in _ONNX if find_spec(module) is None]
            if missing:
                raise ConfigError(f"ONNX needs the package {' and '.join(missing)}: {install_line('onnx')}")
