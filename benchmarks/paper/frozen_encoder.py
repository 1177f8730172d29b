"""An encoder that computes the vectors of a task's texts once; only modules behind it can be trained.

Training the projection of such an encoder takes milliseconds a step, so that many learners, folds and seeds fit on a
processor. The vectors lie in files of `PART` texts, in the order of `task_texts`, and are not computed again.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import metasearch as ms
from metasearch.config.roles import Role
from metasearch.data.benchmark import Benchmark
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.records import texts_of
from metasearch.encoders.encoder import Encoder

PART = 400
"""Texts in a file."""
_UNKNOWN = "[UNK]"


def frozen_encoder(name: str, benchmark: Benchmark, folder: Path, device: torch.device) -> Encoder:
    """Return an encoder that looks up what another one gives for the texts of a task; its table is not trainable.

    A text that is not in the task has the vector NaN, so that whoever uses it fails.

    Args:
        name: the encoder whose vectors are looked up.
        benchmark: gives the texts.
        folder: of the files with vectors.
        device: device to run on.
    """
    texts = task_texts(benchmark)
    vectors = _vectors(name, benchmark, texts, folder / f"vectors-{name}")
    words = {remove_invisible(text): row for row, (_, text) in enumerate(texts)}
    if len(words) != len(texts):
        raise ValueError(f"{benchmark.task.name}: of {len(texts)} texts {len(words)} are distinct to a tokenizer")
    table = np.concatenate([vectors, np.full_like(vectors[:1], np.nan)])
    tokenizer = Tokenizer(WordLevel(words | {_UNKNOWN: len(words)}, unk_token=_UNKNOWN))
    embedding = StaticEmbedding(tokenizer, embedding_weights=table)
    embedding.requires_grad_(False)
    return Encoder(SentenceTransformer(modules=[embedding, Normalize()]), name).to(device)


def task_texts(benchmark: Benchmark) -> list[tuple[Role, str]]:
    """Return the distinct texts of a task with their roles, sorted by role and length."""
    distinct = {(role, text) for role, text, _ in texts_of(benchmark.data)}
    return sorted(distinct, key=lambda pair: (pair[0], len(pair[1]), pair[1]))


def _vectors(name: str, benchmark: Benchmark, texts: list[tuple[Role, str]], folder: Path) -> NDArray[np.float32]:
    """Return the vectors of texts `(N, D)`, from files where they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[NDArray[np.float32]] = []
    encoder: Encoder | None = None
    for start in range(0, len(texts), PART):
        file, part = folder / f"{start:06d}.npy", texts[start : start + PART]
        if not file.exists():
            encoder = encoder or ms.load_encoder(name, benchmark.task.max_length, device="cpu")
            # Sorted by role, so that the parts of each role follow one another.
            roles = dict.fromkeys(role for role, _ in part)
            found = np.concatenate(
                [encoder.encode([text for own, text in part if own == role], role) for role in roles]
            )
            written = file.with_suffix(".partial.npy")
            np.save(written, found)
            written.rename(file)
        parts.append(np.load(file))
    return np.concatenate(parts)
