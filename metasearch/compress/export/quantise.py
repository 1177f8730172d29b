"""Stores the weights of a graph in eight bits: tables with a step for each row, products with one for each block.

- A row of a table that is looked up is its integers times its step, as in `metasearch.encoders.int8`.
- A column of weights in a matrix product is cut into blocks of 128 numbers, each with a step: `MatMulNBits` of
  onnxruntime. It rounds what it multiplies them with in such blocks, too, for each token by itself, so that a vector
  hardly depends on what else is in its batch: in the fourth digit, as a number that is rounded the other way is.

Notation used for tensor shapes: V rows, D columns of a table; K rows, N columns of weights; B blocks of a column.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.int8 import LEVELS

BLOCK = 128
"""Weights of a column that share a step."""
_INTEGERS = 4
"""What tells onnxruntime to multiply integers where the processor can; elsewhere weights become float32 first."""
_ZERO = 128
"""What stands for zero: integers of `MatMulNBits` have no sign."""
_LEAST = 2**14
"""Numbers of a tensor that is worth it; those of token types and relative positions stay as they are."""
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
    return _rounded(table, np.abs(table).max(1, keepdims=True))


def by_block(weights: NDArray[np.float32]) -> Stored:
    """Return uint8 integers `(N, B, 128)` for weights `(K, N)`, where 128 is zero, and their steps `(N, B)`.

    Behind the last weight of a column there are zeros; the step of a block of zeros is 0.
    """
    rows, columns = weights.shape
    even = np.pad(weights, ((0, -rows % BLOCK), (0, 0)))
    blocks = np.ascontiguousarray(even.T).reshape(columns, -1, BLOCK)
    integers, steps = _rounded(blocks, np.abs(blocks).max(2, keepdims=True))
    return (integers.astype(np.int16) + _ZERO).astype(np.uint8), steps[..., 0]


def _rounded(values: NDArray[np.float32], largest: NDArray[np.float32]) -> Stored:
    steps = largest / np.float32(LEVELS)
    divisors = np.where(steps > 0, steps, np.float32(1))
    # A step so small that it is subnormal is rounded coarsely: quotients may exceed 127.
    return np.clip(np.round(values / divisors), -LEVELS, LEVELS).astype(np.int8), steps


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
