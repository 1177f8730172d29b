"""What texts are encoded in."""

from typing import Literal

EncodingPrecision = Literal["auto", "float32", "bfloat16", "int8"]
"""What texts are encoded in."""
Low = Literal["bfloat16", "int8"]
Chosen = Literal["float32", "bfloat16", "int8"]
