"""`metasearch evaluate`: the scores of an encoder as it is, without a run folder."""

from collections.abc import Sequence
from pathlib import Path

from metasearch.compress.export.facts import is_exported
from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.config import registry
from metasearch.config.measure import Pool
from metasearch.config.run import Device, EncoderConfig, Precision
from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError
from metasearch.pipelines import factory
from metasearch.pipelines.run import Row
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.callbacks import SILENT, Callback


def evaluate_encoder(
    ref: EncoderConfig,
    benchmark: Benchmark,
    split: str,
    pools: Sequence[Pool],
    callback: Callback = SILENT,
    precision: Precision = "fp32",
    device: Device = "auto",
) -> list[Row]:
    """Return the scores of an encoder on a part of a benchmark; in bfloat16 the rows have a `precision`."""
    encoder = _opened(ref, benchmark, precision, device)
    scorer = Scorer({"encoder": ref.name}, callback)
    return scorer.score(ref.name, encoder, benchmark, split, pools=pools, precision=precision).rows


def _opened(ref: EncoderConfig, benchmark: Benchmark, precision: Precision, device: Device) -> Encoder | OnnxEncoder:
    """Return the encoder, or what runs an exported graph, with the lengths of the task."""
    if ref.name in registry.names("encoders") or not is_exported(Path(ref.name)):
        return factory.load_encoder(ref, benchmark.task.max_length, identify=True, device=device)
    if device not in ("auto", "cpu"):
        raise ConfigError(f"--device {device}: {ref.name} is an export to ONNX, which runs on the processor here")
    if precision != "fp32":
        raise ConfigError(f"--precision {precision}: {ref.name} is an export to ONNX, which has a precision of its own")
    return OnnxEncoder(Path(ref.name), benchmark.task.max_length, ref.prompts)
