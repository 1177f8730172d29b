"""Number formats by name: of training, of encoding and of stored embeddings."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer

ALIASES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Short name → name. Settings take both; run folders keep the short name, so that old and new ones compare equal."""
SHORT = {name: short for short, name in ALIASES.items()}


def _full_name(value: Any) -> Any:
    return ALIASES.get(value, value) if isinstance(value, str) else value


_Alias, _Stored = BeforeValidator(_full_name), PlainSerializer(lambda value: SHORT[value], return_type=str)
Precision = Annotated[Literal["float32", "bfloat16"], _Alias, _Stored]
"""Of training."""
TargetType = Annotated[Literal["float32", "float16"], _Alias, _Stored]
"""Of a teacher's stored embeddings."""
EncodingPrecision = Literal["auto", "float32", "bfloat16"]
"""Of texts that are encoded."""
EncodingSetting = Annotated[EncodingPrecision, _Alias]
Chosen = Literal["float32", "bfloat16"]
