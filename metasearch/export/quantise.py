"""Makes a graph compute in eight bits: tables with a step for each row, products with one for each column.

A row of a table that is looked up is its integers times its step, as in `metasearch.encoders.int8`. In a matrix product
the weights are integers with a step for each column, and what is multiplied with them is rounded to eight bits when the
graph runs, with one step for the whole batch: a vector depends a little on what else is in its batch.

Notation used for tensor shapes: V rows, D columns of a table.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST = 2**14
"""Numbers of a table that is worth it; those of token types and relative positions stay as they are."""


def quantise_tables(graph: Any) -> None:
    """Store the tables of a graph in which rows are looked up as int8 integers and a step for each row, in place."""
    from onnx import numpy_helper

    body = graph.graph
    uses = [name for node in body.node for name in node.input]
    tensors = {tensor.name: tensor for tensor in body.initializer}
    nodes = []
    for node in body.node:
        tensor = tensors.get(node.input[0]) if node.op_type == "Gather" else None
        if tensor is None or len(tensor.dims) != 2 or np.prod(tensor.dims) < _LEAST or uses.count(tensor.name) > 1:
            nodes.append(node)
            continue
        integers, steps = quantised_rows(numpy_helper.to_array(tensor))
        body.initializer.remove(tensor)
        body.initializer.append(numpy_helper.from_array(integers, f"{tensor.name}.int8"))
        body.initializer.append(numpy_helper.from_array(steps, f"{tensor.name}.step"))
        nodes += _lookup(tensor.name, node)
    del body.node[:]
    body.node.extend(nodes)


def quantise_products(source: Path, target: Path, large: bool) -> None:
    """Write a graph again, with its matrix products by constant weights in integers.

    Weights have seven bits: without VNNI, processors add two products of eight bits in sixteen, which can overflow.

    Args:
        source: file of the graph.
        target: file to write.
        large: whether weights go to a file beside it.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Its advice to optimise the graph before goes to the root logger.
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul", "Gemm"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=large,
        )
    finally:
        logging.disable(before)


def quantised_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the integers `(V, D)` of a table `(V, D)`, and their steps `(V, 1)`; that of a row of zeros is 0."""
    steps = np.abs(table).max(1, keepdims=True) / np.float32(127)
    divisors = np.where(steps > 0, steps, np.float32(1))
    return np.clip(np.round(table / divisors), -127, 127).astype(np.int8), steps.astype(np.float32)


def _lookup(name: str, node: Any) -> list[Any]:
    """Return nodes that give the rows that a node gave of a table."""
    from onnx import TensorProto, helper

    ids, rows = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{name}.int8", ids], [f"{rows}.int8"], axis=0),
        helper.make_node("Cast", [f"{rows}.int8"], [f"{rows}.integers"], to=TensorProto.FLOAT),
        helper.make_node("Gather", [f"{name}.step", ids], [f"{rows}.step"], axis=0),
        helper.make_node("Mul", [f"{rows}.integers", f"{rows}.step"], [rows]),
    ]
