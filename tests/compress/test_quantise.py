"""Weights of a graph in eight bits: how they are stored, and what a graph of them computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from helpers.onnx_extra import needs_onnx
from metasearch.compress.onnx_graph import BLOCK, by_block, by_row, quantise

FINITE = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
MATRICES = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)


def test_a_block_of_a_column_has_a_step_of_its_own_and_ends_in_zeros():
    weights = np.zeros((BLOCK + 1, 2), np.float32)
    weights[0], weights[BLOCK] = [1.27, 12.7], [-2.54, 0]
    integers, steps = by_block(weights)
    assert integers.shape == (2, 2, BLOCK)
    np.testing.assert_allclose(steps, [[0.01, 0.02], [0.1, 0]], rtol=1e-6)
    assert integers[:, 0, 0].tolist() == [128 + 127, 128 + 127]
    assert integers[:, 1, 0].tolist() == [128 - 127, 128]
    assert (integers[:, 1, 1:] == 128).all()


@given(MATRICES)
def test_no_number_is_further_off_than_half_a_step(matrix):
    integers, steps = by_row(matrix)
    assert (np.abs(integers * steps.astype(np.float64) - matrix) <= steps * 0.501).all()
    blocks, block_steps = by_block(matrix)
    back = ((blocks.astype(np.float64) - 128) * block_steps[..., None]).reshape(matrix.shape[1], -1).T[: len(matrix)]
    assert (np.abs(back - matrix) <= block_steps[:, :1].T * 0.501).all()


@needs_onnx
@pytest.mark.parametrize("tied", [False, True])
def test_a_graph_of_stored_weights_computes_nearly_the_same_and_is_a_quarter_as_large(tied):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    drawn = np.random.default_rng(0)
    table = drawn.normal(size=(300, 256)).astype(np.float32)
    # A tied one is looked up and multiplied with, as its rows are as many as its columns.
    table = table[:256] if tied else table
    weights = table if tied else drawn.normal(size=(256, 200)).astype(np.float32)
    product = "table" if tied else "weights"
    tensors = {"table": table, product: weights, "bias": np.ones(weights.shape[1], np.float32)}
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("MatMul", ["rows", product], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["out"]),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "test", [ids], [out], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    before = len(model.SerializeToString())
    quantise(model)
    asked = drawn.integers(0, len(table), (3, 5))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"ids": asked})
    expected = table[asked] @ weights + 1
    # Three roundings, each by at most half of 1 / 127 of what is largest, add up as errors of either sign do.
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
    assert len(model.SerializeToString()) < (0.6 if tied else 0.35) * before
    # A token by itself has the vector that it has beside others.
    (alone,) = session.run(None, {"ids": asked[:1, :1]})
    np.testing.assert_allclose(alone[0, 0], found[0, 0], rtol=1e-5, atol=1e-5)
