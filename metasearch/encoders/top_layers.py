"""Trains the top layers of an encoder on states that its frozen lower layers computed once.

The lower layers give the same states in every step, fold and score. So the states of all tokens of known texts are rows
of a table, which takes the place of the embedding block: a text becomes the numbers of its rows. Vectors and gradients
of the top layers are those of the whole encoder, and its weights are shared, so that training them trains it.

Notation used for tensor shapes: N tokens of all texts, T tokens of one text, H width of a layer.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.config.roles import Role
from metasearch.data.formats.given import list_texts
from metasearch.encoders.checks import TOLERANCE, distance
from metasearch.encoders.compressed import layers_of, put_layers
from metasearch.encoders.encoder import Embedder, Encoder, Output
from metasearch.encoders.inputs import TransformerInput, is_static
from metasearch.encoders.lengths import BATCH_TOKENS, encode_in_batches

Texts = Mapping[Role, Sequence[str]]

_LIKE = ("bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta")
"""Kinds of networks in which a layer needs nothing but the states of the layer below."""
_PROBED = 2
"""Texts of each role whose vectors are compared with the vectors of the whole encoder."""


class _Table(nn.Module):
    """Takes the place of an embedding block: a row of the table for each token."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(len(states), states.shape[1], _weight=states)
        self.word_embeddings.requires_grad_(False)

    def forward(self, input_ids: Tensor, *_: Any, **__: Any) -> Tensor:
        """Return the states of tokens, `(B, T, H)`."""
        found: Tensor = self.word_embeddings(input_ids)
        return found


class _AnyRows(TransformerInput):
    """Reads texts that have no states, such as a probe of layouts, as any rows of the table."""

    def tokenise(self, texts: Sequence[str], limit: int) -> Mapping[str, Sequence[Sequence[int]]]:
        """Return the tokenizer's columns with numbers of rows in place of words; see `TransformerInput`."""
        found, size = super().tokenise(texts, limit), len(self.words.weight)
        return {**found, "input_ids": [[number % size for number in own] for own in found["input_ids"]]}


class LowerStates:
    """The states of all tokens of some texts below the top layers of an encoder.

    Attributes:
        top: number of top layers.
        rows: role and text → its tokens, `(columns, T)`, with numbers of rows in place of words.
        table: the states, behind rows for padding, `(N + padding, H)`.
    """

    def __init__(self, encoder: Encoder, top: int, texts: Texts) -> None:
        """Compute the states, in batches of texts of similar length; `encoder` has more than `top` layers."""
        lower = _share(encoder, slice(0, -top))
        read, device = TransformerInput(lower.model[0]), encoder.device
        self.top = top
        self.rows: dict[tuple[Role, str], NDArray[np.int32]] = {}
        keys = [(role, text) for role, own in texts.items() for text in dict.fromkeys(own)]
        tokens = [row for role, own in texts.items() for row in encoder.tokens([*dict.fromkeys(own)], role)]
        self.columns = encoder.columns
        ends = read.padding + 1 + np.cumsum([row.shape[1] for row in tokens])
        self.table = next(lower.parameters()).new_zeros(int(ends[-1]), read.width, requires_grad=False)
        for key, row, end in zip(keys, tokens, ends.tolist(), strict=True):
            self.rows[key] = row.copy()
            self.rows[key][self.columns.index("input_ids")] = np.arange(end - row.shape[1], end)

        def compute(numbers: list[int]) -> NDArray[np.float32]:
            found = read.hidden(encoder.padded([tokens[i] for i in numbers]), "states")
            places = np.concatenate([self.rows[keys[i]][self.columns.index("input_ids")] for i in numbers])
            self.table[torch.from_numpy(places).long().to(device)] = found
            return np.zeros((len(numbers), 1), np.float32)

        lower.eval()
        with torch.no_grad():
            lengths = np.array([row.shape[1] for row in tokens])
            encode_in_batches(lengths, compute, 64, BATCH_TOKENS, encoder.on_progress)


class TopEncoder(Encoder):
    """The top layers of an encoder, and all behind them, for texts whose states are known.

    It shares all weights with the encoder, which encodes texts without states.
    """

    def __init__(self, encoder: Encoder, states: LowerStates) -> None:
        self.embedder = _share(encoder, slice(-states.top, None))
        self.model = self.embedder.model
        TransformerInput(self.model[0]).backbone.embeddings = _Table(states.table)
        self._begin(encoder.name, encoder.max_length, self.input, self.embedder, self.model)
        self._encoder, self.states, self.columns, self.origin = encoder, states, states.columns, encoder.origin

    @property
    def input(self) -> TransformerInput:
        """The model's input module."""
        return _AnyRows(self.model[0])

    def tokens(self, texts: Iterable[str], role: Role) -> list[NDArray[np.int32]]:
        """Return the rows of each text in the table, as `Encoder.tokens` returns its tokens."""
        return [self.states.rows[role, text] for text in texts]

    def lengths(self, texts: Iterable[str], role: Role) -> NDArray[np.int64]:
        """Return each text's number of tokens; see `Encoder.lengths`."""
        return self._encoder.lengths(texts, role)

    def encode(
        self, texts: Iterable[str], role: Role, output: Output = "sentence", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Return vectors `(len(texts), D)` with the current weights; see `Encoder.encode`."""
        texts = list_texts(texts)
        if all((role, text) in self.states.rows for text in texts):
            return super().encode(texts, role, output, batch_size)
        return self._encoder.encode(texts, role, output, batch_size)


def lower_states(encoder: Encoder, top: int, texts: Texts) -> LowerStates | None:
    """Return states for `TopEncoder`; None where the encoder has no further layers, or is not built like BERT."""
    if is_static(encoder.model):
        return None
    backbone = TransformerInput(encoder.model[0]).backbone
    # Recurrent layers are another kind of list.
    layers = layers_of(backbone) if backbone.config.model_type in _LIKE else None
    if type(layers) is not nn.ModuleList or len(layers) <= top:
        return None
    some = {role: own[:_PROBED] for role, own in texts.items() if own}
    found = TopEncoder(encoder, LowerStates(encoder, top, some))
    for role, own in some.items():
        one, other = (torch.from_numpy(each.encode(own, role)) for each in (found, encoder))
        if distance(one, other) > TOLERANCE:
            return None
    return LowerStates(encoder, top, texts)


def _share(encoder: Encoder, kept: slice) -> Embedder:
    """Return an encoder's network with some layers, and with the same weights."""
    model = encoder.model
    shared = [*model.parameters(), *model.buffers(), model.tokenizer, model.model_card_data]
    made = copy.deepcopy(encoder.embedder, {id(part): part for part in shared})
    backbone = TransformerInput(made.model[0]).backbone
    put_layers(backbone, layers_of(backbone)[kept])
    return made
