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

from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError, first_line
from metasearch.version import __version__


class Network(nn.Module):
    """An encoder as a function of tensors alone: columns of its tokenizer `(B, T)` in, unit vectors `(B, D)` out."""

    def __init__(self, encoder: Encoder, columns: Sequence[str]) -> None:
        super().__init__()
        self.embedder = encoder.embedder
        self.columns = tuple(columns)

    def forward(self, *columns: Tensor) -> Tensor:
        """Return the vectors for columns such as token ids and attention mask."""
        vectors: Tensor = self.embedder(dict(zip(self.columns, columns, strict=True)))
        return vectors


OUTPUT = "sentence_embedding"
LARGEST = 2**31 - 2**20
"""Bytes of weights that fit into one file: its format, protobuf, ends at two GiB."""
_TEXTS = ["a", "Where is the key?", "The key is under the mat."]


def build_graph(encoder: Encoder) -> Any:
    """Return an encoder in evaluation mode as an `onnx.ModelProto`, with weights, in float32.

    Inputs are columns of its tokenizer, `(batch, length)` in int64; the output is `sentence_embedding`, `(batch, D)`,
    with pooling, linear maps and normalisation. `EncoderError` if a part of the network cannot be written as a graph.
    """
    columns, values = zip(*_example(encoder).items(), strict=True)
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                Network(encoder, columns).eval(),
                tuple(values),
                input_names=list(columns),
                output_names=[OUTPUT],
                # The arguments of a network come as one tuple.
                dynamic_shapes=((sizes,) * len(columns),),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # whatever the tracer raises of code that it cannot follow
        raise EncoderError(f"{encoder.name} cannot be written as an ONNX graph: {first_line(error)}") from error
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
