"""Write an encoder as one ONNX graph, from tokens to unit vectors, for any batch size and length.

onnx, onnxscript and onnxruntime are the extra `onnx` of the package.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.int8 import round_along
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


# Weights in eight bits: tables with a step for each row, products with one for each block.
#
# - A row of a table that is looked up is its integers times its step, as in `metasearch.encoders.int8`.
# - A column of weights in a matrix product is cut into blocks of 128 numbers, each with a step: `MatMulNBits` of
#   onnxruntime. It rounds its other factor in such blocks too, for each token by itself, so that a vector hardly
#   depends on its batch: in the fourth digit.
#
# Notation used for tensor shapes: V rows, D columns of a table; K rows, N columns of weights; B blocks of a column.

BLOCK = 128
"""Weights of a column that share a step."""
_INTEGERS = 4
"""What tells onnxruntime to multiply integers where the processor can; elsewhere weights become float32 first."""
_ZERO = 128
"""What stands for zero: integers of `MatMulNBits` have no sign."""
_LEAST = 2**14
"""Fewest numbers of a tensor to convert; smaller ones, such as token types, keep their type."""
_DOMAIN = "com.microsoft"

Stored = tuple[NDArray[Any], NDArray[np.float32]]


def quantise(graph: Any) -> None:
    """Store the weights of an `onnx.ModelProto` in eight bits, in place."""
    from onnx import helper, numpy_helper

    body = graph.graph
    tensors = {tensor.name: tensor for tensor in body.initializer}
    made: dict[str, Stored] = {}
    nodes: list[Any] = []
    for node in body.node:
        way = _WAYS.get(node.op_type)
        tensor = tensors.get(node.input[way[0]]) if way else None
        if way is None or tensor is None or len(tensor.dims) != 2 or np.prod(tensor.dims) < _LEAST:
            nodes.append(node)
            continue
        _, store, replace = way
        # A tensor that is read in both ways, as a table that is a projection too, is stored in both.
        name = f"{tensor.name}.{node.op_type}"
        if name not in made:
            made[name] = store(numpy_helper.to_array(tensor))
        nodes += replace(node, name, tensor.dims)
    del body.node[:]
    body.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in body.initializer if tensor.name in read]
    del body.initializer[:]
    body.initializer.extend(kept)
    for name, (integers, steps) in made.items():
        body.initializer.append(numpy_helper.from_array(integers, f"{name}.integers"))
        body.initializer.append(numpy_helper.from_array(steps, f"{name}.steps"))
    graph.opset_import.append(helper.make_opsetid(_DOMAIN, 1))


def by_row(table: NDArray[np.float32]) -> Stored:
    """Return int8 integers `(V, D)` for a table `(V, D)`, and a step per row `(V, 1)`; 0 for a row of zeros."""
    integers, steps = round_along(torch.tensor(table), 1)
    return integers.numpy(), steps.numpy()


def by_block(weights: NDArray[np.float32]) -> Stored:
    """Return uint8 integers `(N, B, 128)` for weights `(K, N)`, where 128 is zero, and their steps `(N, B)`."""
    rows, columns = weights.shape
    even = np.pad(weights, ((0, -rows % BLOCK), (0, 0)))
    integers, steps = round_along(torch.from_numpy(even.T.copy()).reshape(columns, -1, BLOCK), 2)
    return (integers.numpy().astype(np.int16) + _ZERO).astype(np.uint8), steps[..., 0].numpy()


def _lookup(node: Any, name: str, shape: Any) -> list[Any]:
    """Return nodes that look up the same rows as a node."""
    from onnx import TensorProto, helper

    ids, rows = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{name}.integers", ids], [f"{rows}.int8"], axis=0),
        helper.make_node("Cast", [f"{rows}.int8"], [f"{rows}.integers"], to=TensorProto.FLOAT),
        helper.make_node("Gather", [f"{name}.steps", ids], [f"{rows}.steps"], axis=0),
        helper.make_node("Mul", [f"{rows}.integers", f"{rows}.steps"], [rows]),
    ]


def _product(node: Any, name: str, shape: Any) -> list[Any]:
    """Return a node with the same product as a node, with weights `(K, N)` stored in blocks."""
    from onnx import helper

    inputs = [node.input[0], f"{name}.integers", f"{name}.steps"]
    sizes = {"K": shape[0], "N": shape[1], "bits": 8, "block_size": BLOCK, "accuracy_level": _INTEGERS}
    return [helper.make_node("MatMulNBits", inputs, list(node.output), domain=_DOMAIN, **sizes)]


_WAYS: dict[str, tuple[int, Callable[[NDArray[np.float32]], Stored], Callable[[Any, str, Any], list[Any]]]] = {
    "Gather": (0, by_row, _lookup),
    "MatMul": (1, by_block, _product),
}
"""Operator → which of its inputs are weights, how they are stored, and what takes its place."""
