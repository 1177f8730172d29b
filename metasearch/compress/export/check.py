"""Compare an exported graph with its encoder: every embedding must be equal up to rounding.

Notation used for tensor shapes: B texts in a batch, T tokens.
"""

from collections.abc import Iterator
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.config.recipe import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static
from metasearch.errors import EncoderError

TOLERANCE = 1e-5
"""Largest absolute difference that two numbers of a vector may have."""
BATCHES = (1, 7, 64)
_LONG = 512
"""Tokens of the longest text that is checked where no table of positions ends; those of a role may be longer."""
_IN_BATCH = 256
"""Tokens of the longest texts that are checked in a batch; a batch of longer ones would take minutes."""
TEXTS = (
    "", " ", "a", "Where is the key?", "Der Schlüssel liegt unter der Fußmatte.", "أين المفتاح؟ تحت السجادة",
    "กุญแจอยู่ใต้พรม", "चाबी कहाँ है?", "钥匙在垫子下面", "🗝️ e\u0301 \u200b\t\n x",
    "[CLS] [SEP] [MASK] <s> </s> <mask> <pad>", "A text that is longer than any encoder reads, " * 200,
)  # fmt: skip


def difference(encoder: Encoder, exported: OnnxEncoder) -> float:
    """Return the largest difference between the embeddings of an encoder and its graph.

    Compared are tokens drawn at random, in batches of 1, 7 and 64 texts that are 2 tokens long, as long as any role
    allows, and of all lengths between; one text as long as the graph allows; and texts of many scripts in each role,
    from the tokenizer on, the empty one among them.

    Raises:
        EncoderError: it is above 1e-5, or not a number; says where.
    """
    found: dict[str, float] = {}
    for rows in _token_rows(encoder):
        features = encoder.padded(rows)
        where = f"{len(rows)} texts of up to {max(row.shape[1] for row in rows)} tokens"
        found[where] = _largest(
            _vectors(encoder, features), exported.run({name: column.cpu().numpy() for name, column in features.items()})
        )
    roles: tuple[Role, ...] = get_args(Role)
    for role in roles:
        for text in TEXTS:
            found[f"{role} {text[:40]!r}"] = _largest(encoder.encode([text], role), exported.encode([text], role))
        found[f"texts as {role} in one batch"] = _largest(encoder.encode(TEXTS, role), exported.encode(TEXTS, role))
    where, largest = max(found.items(), key=lambda item: np.inf if np.isnan(item[1]) else item[1])
    if not largest <= TOLERANCE:
        raise EncoderError(
            f"{encoder.name}: the ONNX graph differs from the encoder by {largest:.1e}, "
            f"of which {TOLERANCE:.0e} is allowed ({where})"
        )
    return largest


def _token_rows(encoder: Encoder) -> Iterator[list[NDArray[np.int32]]]:
    """Yield tokens `(columns, T)` for texts in a batch; the shortest text of a static encoder has none."""
    drawn = np.random.default_rng(0)
    roles: tuple[Role, ...] = get_args(Role)
    longest = min(max(encoder.limit(role) for role in roles), _IN_BATCH)
    least = 0 if is_static(encoder.model) else 2
    encoder.tokens([""], "text")  # so that its columns are known
    for size in BATCHES:
        for most in (least, 2, longest):
            # The last one is as long as all may be.
            lengths = [*drawn.integers(least, most + 1, size - 1), most]
            yield [_row(encoder, drawn, int(length)) for length in lengths]
    furthest = encoder.input.longest
    if encoder.input.position_table is None:
        furthest = min(furthest, _LONG)
    yield [_row(encoder, drawn, furthest)]


def _row(encoder: Encoder, drawn: np.random.Generator, length: int) -> NDArray[np.int32]:
    """Return one text's columns: token ids, a mask of ones and type 0."""
    words = drawn.integers(0, encoder.input.words.num_embeddings, length)
    fill = {"input_ids": words, "attention_mask": np.ones(length), "token_type_ids": np.zeros(length)}
    return np.array([fill[name] for name in encoder.columns], np.int32)


def _vectors(encoder: Encoder, features: dict[str, torch.Tensor]) -> NDArray[np.float32]:
    training = encoder.embedder.training
    encoder.embedder.eval()
    try:
        with torch.no_grad():
            found: NDArray[np.float32] = encoder.embedder(features).float().cpu().numpy()
    finally:
        encoder.embedder.train(training)
    return found


def _largest(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")
