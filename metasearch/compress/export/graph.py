"""Write an encoder as one ONNX graph, from tokens to unit vectors, for any batch size and length.

onnx, onnxscript and onnxruntime are the extra `onnx` of the package.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from metasearch import __version__
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static
from metasearch.errors import EncoderError, first_line

# An encoder as a function of tensors alone, which can be written as a graph.
#
# Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions.


class Network(nn.Module):
    """A transformer encoder as a network: tokenizer columns in, unit vectors out."""

    def __init__(self, encoder: Encoder, columns: Sequence[str]) -> None:
        super().__init__()
        self.embedder = encoder.embedder
        self.columns = tuple(columns)

    def forward(self, *columns: Tensor) -> Tensor:
        """Return unit vectors `(B, D)` of columns `(B, T)`, such as token ids and attention mask."""
        vectors: Tensor = self.embedder(dict(zip(self.columns, columns, strict=True)))
        return vectors


class StaticNetwork(nn.Module):
    """A static encoder: token ids and attention mask in, unit vectors out."""

    columns = ("input_ids", "attention_mask")

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.words = encoder.input.words
        self.further = nn.ModuleList(list(encoder.model)[1:])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return unit vectors `(B, D)` for ids and mask `(B, T)`; zero without tokens."""
        rows = nn.functional.embedding(ids, self.words.weight) * mask.unsqueeze(-1)
        state: Any = {"sentence_embedding": rows.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)}
        for module in self.further:
            state = module(state)
        vectors: Tensor = state["sentence_embedding"]
        return vectors


def build_network(encoder: Encoder, columns: Sequence[str]) -> Network | StaticNetwork:
    """Return the network of an encoder, with the same weights; `columns` come from its tokenizer."""
    return StaticNetwork(encoder) if is_static(encoder.model) else Network(encoder, columns)


OUTPUT = "sentence_embedding"
LARGEST = 2**31 - 2**20
"""Bytes of weights that fit into one file: its format, protobuf, ends at two GiB."""
_TEXTS = ["a", "Where is the key?", "The key is under the mat."]


def build_graph(encoder: Encoder) -> Any:
    """Return an encoder as an `onnx.ModelProto`, with weights, in float32.

    Inputs are what its network reads of the columns of its tokenizer, `(batch, length)` in int64; the output is
    `sentence_embedding`, `(batch, D)`: pooling, linear maps and normalisation are in the graph.

    Raises:
        EncoderError: a part of the network cannot be written as a graph.
    """
    columns, values = zip(*_example(encoder).items(), strict=True)
    network = build_network(encoder, columns)
    training = encoder.embedder.training
    encoder.embedder.eval()
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                network.eval(),
                tuple(values),
                input_names=list(columns),
                output_names=[OUTPUT],
                # The arguments of a network come as one tuple, except those of a static one.
                dynamic_shapes=_shapes(network, [sizes] * len(columns)),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # whatever the tracer raises of code that it cannot follow
        raise EncoderError(f"{encoder.name} cannot be written as an ONNX graph: {first_line(error)}") from error
    finally:
        encoder.embedder.train(training)
    return _cleaned(program.model_proto)  # type: ignore[union-attr]  # a program, with `dynamo`


def save(graph: Any, path: Path) -> None:
    """Write a graph to a file; weights that do not fit into it go to one beside it, `NAME.onnx_data`."""
    import onnx

    path.parent.mkdir(parents=True, exist_ok=True)
    size = sum(len(tensor.raw_data) for tensor in graph.graph.initializer)
    if size > LARGEST:
        onnx.save(graph, path, save_as_external_data=True, location=f"{path.name}_data")
        # Which takes the weights out of the graph.
        onnx.load_external_data_for_model(graph, str(path.parent))
    else:
        onnx.save(graph, path)


def _example(encoder: Encoder) -> dict[str, Tensor]:
    """Return tokens for some texts; their number differs from their length, because equal sizes would become one."""
    found = encoder.features(_TEXTS, "text")
    if found["input_ids"].shape[1] == len(_TEXTS):
        found = encoder.features(_TEXTS[1:], "text")
    return dict(found)


def _shapes(network: Any, columns: list[dict[int, Any]]) -> Any:
    return tuple(columns) if hasattr(type(network), "columns") else (tuple(columns),)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tracer's own messages out of a command's output."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _cleaned(graph: Any) -> Any:
    """Remove tracer metadata, such as source paths, and unused inputs."""
    body = graph.graph
    read = {name for node in body.node for name in node.input}
    for node in body.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for tensor in body.initializer:
        tensor.ClearField("metadata_props")
    for field in ("value_info", "metadata_props", "doc_string", "quantization_annotation"):
        body.ClearField(field)
    graph.ClearField("metadata_props")
    kept = [each for each in body.input if each.name in read]
    del body.input[:]
    body.input.extend(kept)
    for value in (*body.input, *body.output):
        value.ClearField("metadata_props")
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    for value in body.input:
        value.type.tensor_type.shape.dim[1].dim_param = "length"
    body.name, graph.producer_name, graph.producer_version = "encoder", "metasearch", __version__
    return graph
