"""Adapters of frozen encoders in a training: each text of its data is encoded once, and an adapter is put behind."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from metasearch.config.roles import Role
from metasearch.data.records import Data, SimilarityData, grouped, texts_of
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import CachedEncoder, report_progress
from metasearch.errors import ConfigError
from metasearch.io import cache_key, cached
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.versions import versions

log = logging.getLogger(__name__)


def with_adapter(
    encoder: Encoder,
    wanted: bool,
    parts: Sequence[Data],
    place: Path | None = None,
    callback: Callback = SILENT,
) -> Encoder:
    """Return an encoder with an adapter to train, and its vectors of some data; the encoder itself if not `wanted`.

    An encoder that has an adapter keeps it. `place` is a cache of vectors that runs share.

    Raises:
        ConfigError: the encoder has the maps of an index in place of an adapter.
    """
    if isinstance(encoder, AdaptedEncoder):
        base, adapter = encoder.base, encoder.adapter
        if not isinstance(adapter, MatrixAdapter):
            raise ConfigError(f"encoder '{encoder.name}' has the maps of an index; train the encoder of that index")
        log.info("training the adapter of %s; its other weights stay", encoder.name)
    elif wanted:
        base, adapter = encoder, MatrixAdapter(encoder.dimension())
    else:
        return encoder
    pairs = isinstance(parts[0], SimilarityData)
    made = AdaptedEncoder(base, adapter, pairs, encode_once(base, parts, place, callback))
    made.origin = encoder.origin  # of the checkpoint, which an adapter may belong to
    return made


def encode_once(
    encoder: Encoder, parts: Sequence[Data], place: Path | None = None, callback: Callback = SILENT
) -> CachedEncoder:
    """Return an encoder's vectors of all texts of some data."""
    known = CachedEncoder(encoder)
    distinct = dict.fromkeys((each.role, each.text) for part in parts for each in texts_of(part))
    with report_progress(encoder, partial(callback.on_encode, "each text once")):
        for role, own in grouped(distinct, lambda each: each[0]).items():
            texts = [text for _, text in own]
            known.add(texts, role, _vectors(encoder, texts, role, place))
    return known


def _vectors(encoder: Encoder, texts: list[str], role: Role, place: Path | None) -> "np.typing.NDArray[np.float32]":
    if place is None:
        return encoder.encode(texts, role)
    # On a GPU, or with another release of torch, the last bits differ.
    about = [encoder.fingerprint, role, encoder.limit(role), texts, encoder.device.type, versions()]
    file = "vectors.npy"
    folder = cached(cache_key(about), lambda new: np.save(new / file, encoder.encode(texts, role)), place)
    found: np.typing.NDArray[np.float32] = np.load(folder / file)
    return found
