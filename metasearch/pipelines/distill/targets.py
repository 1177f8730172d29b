"""Outputs of a stage's frozen role for the stage's texts."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasearch.algorithms.base import Targets, TargetSpec
from metasearch.config.distill_run import DistillConfig, TargetType
from metasearch.encoders.encoder import Encoder, Output
from metasearch.errors import ConfigError
from metasearch.pipelines.distill.sources import StageData
from metasearch.pipelines.distill.target_cache import TargetCache, are_vectors
from metasearch.runs.callbacks import Callback
from metasearch.training.packing import PackedEncoder, Parts


class LiveTokens:
    """Outputs of a frozen encoder at every token, computed on demand, since they would fill a disk."""

    def __init__(self, encoder: Encoder, output: Output, bf16: bool = False) -> None:
        self._packed = PackedEncoder(encoder)
        self._output, self._bf16 = output, bf16

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the output at every token, `(N, H)`, text after text."""
        parts = Parts(self._packed, texts, self._output, self._bf16)
        outputs = parts.outputs(parts.batch.cut(self._packed.weights))
        rows: NDArray[np.float32] = outputs.float().cpu().numpy()
        return rows


class TargetStore(NamedTuple):
    """Location and type of stored outputs of frozen encoders; `bf16` is for outputs that are not stored."""

    folder: Path
    kind: TargetType
    bf16: bool
    callback: Callback


def build_targets(
    frozen: Encoder, trained: Encoder, wanted: TargetSpec, data: StageData, store: TargetStore
) -> Targets:
    """Return a frozen encoder's outputs for a stage's texts; missing ones are computed."""
    comparable(frozen, trained, wanted)
    if not are_vectors(wanted.output):
        return LiveTokens(frozen, wanted.output, store.bf16)

    def report(done: int, total: int) -> None:
        store.callback.on_encode(f"targets by {frozen.name}", done, total)

    cache = TargetCache(store.folder, frozen, "text", wanted.output, store.kind)
    cache.add(lambda: texts_for(wanted, data.source.seen(data.batches, data.steps)), report)
    return cache


def texts_for(wanted: TargetSpec, pairs: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in pairs that have an output, with duplicates."""
    return (text for pair in pairs for text in pair.texts[: 2 if wanted.translations else 1])


def targets_folder(config: DistillConfig, run: Path) -> Path:
    """Return the folder with outputs of a run's frozen encoders."""
    return Path(config.targets) if config.targets else run / "targets"


def comparable(frozen: Encoder, trained: Encoder, wanted: TargetSpec) -> None:
    """Raise `ConfigError` unless an encoder can learn a frozen encoder's output."""
    theirs, ours = frozen.dimension(wanted.output), trained.dimension(wanted.output)
    if theirs != ours:
        raise ConfigError(
            f"'{frozen.name}' gives vectors of {theirs} dimensions and '{trained.name}', which learns them, of {ours}; "
            "they must be equal"
        )
    if are_vectors(wanted.output):
        return
    # Token outputs are compared place by place: both encoders must cut a text into the same tokens.
    where = f"output {wanted.output}"
    if frozen.model.tokenizer.get_vocab() != trained.model.tokenizer.get_vocab():
        raise ConfigError(
            f"{where}: '{frozen.name}' and '{trained.name}' have different vocabularies; trim first (metasearch "
            "compress --trim-vocab), then cut the student out of the trimmed encoder and let it learn from that one"
        )
    if frozen.prompt("text") != trained.prompt("text"):
        raise ConfigError(
            f"{where}: '{frozen.name}' puts '{frozen.prompt('text')}' before texts and '{trained.name}' "
            f"'{trained.prompt('text')}'; they must be equal"
        )
    if frozen.limit("text") != trained.limit("text"):
        raise ConfigError(
            f"{where}: '{frozen.name}' takes {frozen.limit('text')} tokens and '{trained.name}' "
            f"{trained.limit('text')}; set max_length of the stage to the smaller number"
        )
