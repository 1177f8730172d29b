"""`metasearch export`: from an encoder to a folder, with the loss measured."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from metasearch.compress.onnx_encoder import Facts, OnnxEncoder
from metasearch.compress.onnx_folder import write_facts, write_onnx
from metasearch.compress.standard import is_compressed, narrowed, plain
from metasearch.config.compress import Form
from metasearch.config.seeding import stream
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts import read_texts
from metasearch.encoders.encoder import Encoder, require_plain
from metasearch.encoders.int8 import write_stored
from metasearch.encoders.open import open_checkpoint
from metasearch.encoders.protocols import report_progress
from metasearch.io.output import whole
from metasearch.pipelines.cards import (
    CARD,
    Dataset,
    Scores,
    describe_servers,
    describe_task,
    describe_value,
    find_base,
    make_card,
)
from metasearch.pipelines.scorer import Scorable, Scorer, with_lengths
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.markdown import by_language
from metasearch.runs.rows import Row
from metasearch.runs.versions import describe_versions, versions

BEFORE = "before"
_SPLIT = "test"
_TEXTS = 4000
"""Texts that directions are taken from; of more, a random part."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportResult:
    """What `export` wrote.

    Attributes:
        folder: folder of the model.
        size: bytes of its files.
        dimension: numbers of a vector.
        difference: largest difference between a graph's vectors and the encoder's.
        rows: scores before and after; `learner` says which.
    """

    folder: Path
    size: int
    dimension: int
    difference: float | None
    rows: Sequence[Row]

    def tree(self) -> dict[str, Any]:
        """Return everything as JSON."""
        facts = {"model": str(self.folder), "bytes": self.size, "dimension": self.dimension}
        return {**facts, "difference": self.difference, "results": list(self.rows)}

    def report(self) -> str:
        """Return it in Markdown, its end in lines."""
        lines = [f"size: {self.size / 1e6:.2f} MB", f"model: {self.folder}"]
        if self.difference is not None:
            lines.insert(0, f"largest difference to the encoder: {self.difference:.1e}")
        scores = [f"{self.rows[0]['task']}:", by_language(self.rows, _SPLIT)] if self.rows else []
        return "\n\n".join([*scores, "\n".join(lines)])


def export(
    encoder: Encoder,
    form: Form,
    folder: Path,
    benchmark: Benchmark | None = None,
    callback: Callback = SILENT,
    made: str = "",
    parts: str = "",
) -> ExportResult:
    """Write an encoder to a folder in another form, and score it on the test part of a benchmark before and after.

    `made` is a sentence on the encoder for the card, and `parts` lists what was estimated from an index.
    `EncoderError` for an encoder with a query adapter, unless it is written as a whole standard model.
    """
    if form.dimensions is not None or not form.plain:
        require_plain(encoder, "export with --onnx, --int8 or --dimensions")
    if form.plain and form.dimensions is None and not made and not is_compressed(encoder):
        log.info("'%s' is already a standard model; copied unchanged", encoder.name)
    changed = _changed(encoder, form, callback)
    if not form.onnx and (limit := describe_servers(changed)):
        log.warning("%s: %s", encoder.name, limit)
    facts = None
    with whole(folder) as partial:
        if form.onnx:
            facts = write_onnx(changed, partial)
        elif form.int8:
            write_stored(changed, partial)
        else:
            changed = plain(changed)
            changed.write(partial)
        rows = _scores(encoder, changed, form, partial, benchmark, callback) if benchmark else []
        if facts:
            write_facts(partial, facts.model_copy(update={"results": tuple(rows)}))
        card = _card(changed, encoder.name, form, rows, benchmark, facts, made, parts)
        (partial / CARD).write_text(card, encoding="utf-8")
        size = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
    return ExportResult(folder, size, changed.dimension(), facts.difference if facts else None, rows)


def _changed(encoder: Encoder, form: Form, callback: Callback) -> Encoder:
    """Return the encoder to write."""
    if form.dimensions is None:
        return encoder
    if not form.texts:
        log.info(
            "the first %d dimensions stay: without Matryoshka training, --texts keeps better ones", form.dimensions
        )
        return narrowed(encoder, form.dimensions)
    texts = list(dict.fromkeys(read_texts(form.texts)))
    if len(texts) > _TEXTS:
        log.info("--texts: %d of %d texts are drawn", _TEXTS, len(texts))
        texts = [texts[i] for i in stream(0, "export").choice(len(texts), _TEXTS, replace=False)]
    with report_progress(encoder, partial(callback.on_encode, "texts")):
        return narrowed(encoder, form.dimensions, encoder.encode(texts, "text"))


def _scores(
    encoder: Encoder, changed: Encoder, form: Form, folder: Path, benchmark: Benchmark, callback: Callback
) -> list[Row]:
    """Return the scores before, of the vectors in float32 where they are others, and as written."""
    length = benchmark.task.max_length
    stages: dict[str, Scorable] = {BEFORE: with_lengths(encoder, benchmark)}
    if changed is not encoder and form.int8:
        stages[f"{form.dimensions} dimensions"] = with_lengths(changed, benchmark)
    stages[form.name] = OnnxEncoder(folder, length) if form.onnx else open_checkpoint(str(folder), length)
    scorer = Scorer({"encoder": encoder.name}, callback)
    return [row for name, each in stages.items() for row in scorer.score(name, each, benchmark, _SPLIT).rows]


def _card(
    encoder: Encoder,
    base: str,
    form: Form,
    rows: Sequence[Row],
    benchmark: Benchmark | None,
    graph: Facts | None,
    made: str,
    parts: str,
) -> str:
    """Return the card for a model of `metasearch export`, with scores on a benchmark if available.

    `base` names the encoder before, `graph` has the facts in an ONNX graph's folder, and `made` is a sentence.
    """
    source = find_base("base", base)
    kind, sentences = "a sentence-transformers model", [made] if made else []
    if graph is not None:
        kind = "an ONNX graph"
        sentences.append(f"Its vectors differ from the encoder's by at most {graph.difference:.1e}.")
    changes = [("in int8", form.int8), (f"with {form.dimensions} dimensions", form.dimensions)]
    how = " ".join([kind, *(change for change, wanted in changes if wanted)])
    asked = {"form": form.name, "dimensions": form.dimensions, "directions from": form.texts}
    task = benchmark.task if benchmark else None
    data = [Dataset("estimated from them", "pages and labels of the index", parts)] if parts else []
    return make_card(
        encoder,
        (source,),
        (),
        command="export",
        graph=graph,
        int8=form.int8,
        title=f"{source.short} as {how}",
        summary=" ".join([f"The sentence encoder {source.name} as {how}, written by metasearch.", *sentences]),
        facts={
            **{name: describe_value(value) for name, value in asked.items() if value},
            "versions": describe_versions(graph.versions if graph else versions()),
        },
        data=[*data, *([describe_task("scored on", task, rows)] if task else [])],
        scores=Scores(rows, form.name, BEFORE) if task else None,
    )
