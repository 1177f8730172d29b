"""How many tokens texts have, and which of them an encoder reads to their end."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.encoder import Encoder
from metasearch.spec.recipe import Role


def is_cut(encoder: Encoder, texts: Sequence[str], role: Role) -> NDArray[np.bool_]:
    """Return of each text whether the encoder leaves its end unread, as the limit of the role is reached, `(N,)`."""
    limit = encoder.limit(role)
    cut = encoder.lengths(texts, role) >= limit
    # One that has exactly as many tokens as may be is read to its end.
    if full := np.flatnonzero(cut).tolist():
        prompt = encoder.prompt(role)
        more = encoder.input.tokenise([prompt + texts[i] for i in full], limit + 1)["input_ids"]
        cut[full] = [len(tokens) > limit for tokens in more]
    return cut


def forget(encoder: Encoder) -> None:
    """Let an encoder forget the tokens of the texts that it has seen: one that serves for weeks would hold them all."""
    encoder._tokens.clear()
