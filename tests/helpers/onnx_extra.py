"""What tests of ONNX graphs share; they are skipped where the extra `onnx` is not installed."""

import copy
from importlib.util import find_spec

import numpy as np
import pytest

from helpers.backbones import RECURRENT, make
from metasearch.compress.student import make_student
from metasearch.encoders.maps import Projection
from metasearch.encoders.neutral import append

needs_onnx = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxscript", "onnxruntime"))),
    reason="the extra onnx is not installed: pip install onnx onnxscript onnxruntime",
)


def small(kind="bert"):
    """Return an encoder of one layer."""
    return make(kind, layers=1)


def student(kind):
    """Return an encoder with a factorised word table, and two of six layers that run three times, where they can."""
    return make_student(make(kind), 4, 2, None if kind in RECURRENT else 1)


def neutral(encoder):
    """Return a copy of an encoder that ends in a map which takes two directions and a centre out."""
    made, width = copy.deepcopy(encoder), encoder.dimension()
    append(made, Projection(np.linspace(0, 0.1, width), np.eye(width)[:2], ("de", "tr")))
    return made
