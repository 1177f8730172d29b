#!/usr/bin/env bash
# onnxruntime 1.22.1: quantize_dynamic scales activations by the whole tensor. So the result for a row depends on the rows
# beside it: an embedding from a dynamically quantised graph depends on its batch.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.18.0 onnxruntime==1.22.1 numpy==2.3.1
cd "$work"
"$work/venv/bin/python" - <<'PY'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

rng = np.random.default_rng(0)
weights = numpy_helper.from_array(rng.standard_normal((64, 16)).astype(np.float32), "weights")
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "weights"], ["y"])],
    "linear",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 16])],
    [weights],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), "plain.onnx")
quantize_dynamic("plain.onnx", "int8.onnx")
row, other = rng.standard_normal((1, 64)).astype(np.float32), 20 * rng.standard_normal((1, 64)).astype(np.float32)


def cosine(path):
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run
    alone, beside = run(None, {"x": row})[0][0], run(None, {"x": np.concatenate([row, other])})[0][0]
    return float(alone @ beside / np.linalg.norm(alone) / np.linalg.norm(beside))


plain, int8 = cosine("plain.onnx"), cosine("int8.onnx")
print(f"the same row alone and beside a row with 20 times its norm: cosine {plain:.5f} in float32, {int8:.5f} in int8")
assert plain > 0.99999
assert int8 < 0.999
PY
echo "seen: a row's result of a dynamically quantised MatMul depends on the other rows"
