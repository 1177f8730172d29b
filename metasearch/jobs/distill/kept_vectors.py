"""Vectors of frozen encoders, computed once and kept on disk for all languages, epochs, stages and runs.

    <folder>/<key>/about.json        what the key stands for: encoder, role, length and output
    <folder>/<key>/segment-<hash>/   texts.npy: digests of N texts; vectors.npy: their vectors, `(N, D)` float32
    <folder>/<key>/lock              held by a process while it computes a segment

A segment is written beside the others and takes its name when it is on the disk, so it is there whole or not at all.
The name is a hash of its content: one that is damaged is found, dropped and computed again. Processes that need the
same vectors share the work segment by segment.

Texts are known by a digest of 128 bits. That two of a billion texts share one has a probability of 1.5e-21.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.encoder import Encoder
from metasearch.errors import NonFiniteError
from metasearch.jobs.distill.segments import Segment, SegmentFolder, digests_of
from metasearch.spec.recipe import Role

KeptOutput = Literal["sentence", "pooled", "embedding"]
"""The outputs of an encoder that are one vector a text."""

SEGMENT = 4096
"""Texts of a segment; whole batches of `Encoder.encode`, so that cutting into segments changes no batch and no bit."""


class Targets:
    """The kept vectors of one encoder, role and output, read from the disk as they are asked for.

    Attributes:
        dimension: D of every vector.
    """

    def __init__(self, segments: Sequence[Segment], dimension: int) -> None:
        self.dimension = dimension
        self._vectors = [segment.vectors for segment in segments]
        digests = np.concatenate([np.zeros((0, 2), np.uint64), *(segment.digests for segment in segments)])
        sizes = [len(segment.digests) for segment in segments]
        order = np.lexsort((digests[:, 1], digests[:, 0]))
        self._digests = digests[order]
        self._segment = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
        self._row = np.concatenate([np.zeros(0, np.int32), *(np.arange(n, dtype=np.int32) for n in sizes)])[order]

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, `(B, D)`, in their order.

        Raises:
            KeyError: a text is none of those that `TargetStore.targets` was asked for.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        places = self._places(texts)
        segments, rows = self._segment[places].tolist(), self._row[places].tolist()
        for i, (segment, row) in enumerate(zip(segments, rows, strict=True)):
            vectors[i] = self._vectors[segment][row]
        return vectors

    def _places(self, texts: Sequence[str]) -> NDArray[np.intp]:
        wanted = digests_of(texts)
        places = np.searchsorted(self._digests[:, 0], wanted[:, 0])
        while True:  # once, but for texts that share the first half of their digests
            inside = places < len(self._digests)
            at = self._digests[np.where(inside, places, 0)] if len(self._digests) else wanted
            here = inside & (at == wanted).all(1)
            if here.all():
                return places
            onward = inside & (at[:, 0] == wanted[:, 0]) & ~here
            if not (here | onward).all():
                raise KeyError(f"no kept vector of the text {texts[int(np.argmin(here | onward))]!r}")
            places = places + onward


class TargetStore:
    """A folder of kept vectors, which several processes and runs may use at once.

    Vectors depend in their last bits on the texts that share their batch. What is kept is never computed again, so
    every later run sees the same bits; a store filled in another order may differ in the last ones.

    Args:
        folder: made when it is missing; deleting it, or a folder in it, costs only the time to compute again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, SegmentFolder] = {}

    def targets(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        role: Role,
        output: KeptOutput = "sentence",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Targets:
        """Return the vectors of texts; those not kept yet are computed and kept, a segment at a time, longest first.

        What was finished stays when this is interrupted, also by an exception of `on_progress`.

        Args:
            encoder: frozen; its weights are part of what the vectors are kept under.
            texts: in any order, also more than once.
            role: of all of them.
            output: what is taken from the encoder.
            on_progress: called after each segment with the new texts done and the new texts in all.

        Raises:
            NonFiniteError: the encoder gives a vector that is not finite.
            RunFolderError: the folder cannot be written, for want of space say; finished segments stay.
        """
        about = {
            "fingerprint": encoder.fingerprint,
            "role": role,
            "max_length": encoder.limit(role),
            "output": output,
            "dimension": encoder.dimension(output),
        }
        key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        kept = self._open.setdefault(key, SegmentFolder(self.folder / key, {"encoder": encoder.name, **about}))
        missing = kept.missing(texts)
        if missing:
            lengths = encoder.lengths(list(missing.values()), role)
            items = list(missing.items())
            missing = dict(items[i] for i in np.argsort(-lengths, kind="stable"))
        total = len(missing)
        while missing:
            with kept.locked(missing):
                kept.find(missing, repair=True)
                chunk = dict(itertools.islice(missing.items(), SEGMENT))
                if chunk:
                    kept.add(missing, chunk, _encoded(encoder, list(chunk.values()), role, output))
            if on_progress:
                on_progress(total - len(missing), total)
        return Targets(list(kept.segments.values()), encoder.dimension(output))


def _encoded(encoder: Encoder, texts: Sequence[str], role: Role, output: KeptOutput) -> NDArray[np.float32]:
    vectors = encoder.encode(texts, role, output)
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        text = texts[int(np.argmin(finite))]
        shown = text if len(text) <= 80 else f"{text[:80]}..."
        raise NonFiniteError(f"encoder {encoder.name}: its {output} vector of the {role} '{shown}' is not finite")
    return vectors
