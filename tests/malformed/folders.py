"""Encoders, runs and studies with a file missing, damaged or changed."""

import json
from functools import partial
from pathlib import Path

from malformed.row import Given, Row, spoil, swap, without

EVALUATE = "evaluate --task demo-sts --device cpu --encoder TMP/"
DAMAGED = r"checksum mismatch: it was changed since the run wrote it, or damaged; its hash is in .*SHA256SUMS"


def _encoder(base: str, what: str, given: Given, says: str) -> Row:
    return Row(f"{base}, {what}", f"{EVALUATE}{base}", 6, f"{base}'?.*{says}", given, base)


def _of_any_encoder(base: str, weights: str) -> list[Row]:
    return [
        _encoder(base, "no weights", without(weights), "no weights"),
        _encoder(base, "weights cut off", partial(_cut, f"{weights}"), "cannot be loaded: "),
        _encoder(base, "empty weights", spoil(weights, ""), "cannot be loaded: "),
        _encoder(base, "weights of noise", spoil(weights, b"\xff" * 4096), "cannot be loaded: "),
        _encoder(base, "no JSON in modules.json", spoil(f"{base}/modules.json", "{"), "cannot be loaded: "),
        _encoder(
            base, "no module in modules.json", spoil(f"{base}/modules.json", "[]"), "modules.json: expected a JSON list"
        ),
    ]


def _cut(name: str, folder: Path) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-100])


def _set(name: str, **values: object) -> Given:
    """Return what gives keys of a JSON file other values."""
    return spoil(name, lambda text: json.dumps({**json.loads(text), **values}))


ENCODERS = [
    *_of_any_encoder("encoder", "encoder/model.safetensors"),
    *_of_any_encoder("int8", "int8/model.safetensors"),
    _encoder("encoder", "no config.json", without("encoder/config.json"), "cannot be loaded: "),
    _encoder("encoder", "a list in config.json", spoil("encoder/config.json", "[]"), "cannot be loaded: "),
    _encoder("encoder", "an unknown type", _set("encoder/config.json", model_type="brt"), "cannot be loaded: "),
    _encoder("encoder", "wider than its weights", _set("encoder/config.json", hidden_size=64), "cannot be loaded: "),
    _encoder("encoder", "deeper than its weights", _set("encoder/config.json", num_hidden_layers=9), "do not fit"),
    _encoder("encoder", "a part that it has not", _set("encoder/sentence_bert_config.json",
        modality_config={"text": {"method": "froward", "method_output_name": "x"}}, module_output_name="x"),
        "cannot read a text of 3 tokens: .*'froward'"),
    _encoder("encoder", "no tokenizer", without("encoder/tokenizer.json"), "cannot be loaded: .*tokenizer"),
]  # fmt: skip
RUNS = [
    Row("no config.yaml", "resume TMP/run", 5, "it has neither config.yaml nor study.yaml",
        without("run/config.yaml"), "run"),
    Row("config.yaml is no YAML", "resume TMP/run", 2, r"config.yaml:\d+: not YAML",
        spoil("run/config.yaml", "a: [1\n"), "run"),
    Row("config.yaml is empty", "resume TMP/run", 2, "config.yaml:1: expected keys",
        spoil("run/config.yaml", ""), "run"),
    Row("config.yaml of nothing", "resume TMP/run", 2, "config: missing key",
        spoil("run/config.yaml", "a: b\n"), "run"),
    Row("no results.jsonl", "compare TMP/run", 3, "missing, though the run is finished",
        without("run/results.jsonl"), "run"),
    Row("a score that is a text", "compare TMP/run", 3, "results.jsonl:2: value: \"1\" is no number",
        swap("run/results.jsonl", '"value": ', '"value": "1", "was": '), "run"),
    Row("a score of NaN", "compare TMP/run", 3, "results.jsonl:2: value: nan is not finite",
        swap("run/results.jsonl", '"value": ', '"value": NaN, "was": '), "run"),
    Row("facts that are a text", "compare TMP/run", 3, "results.jsonl:1: not a score",
        swap("run/results.jsonl", '{"facts": {', '{"facts": "", "was": {'), "run"),
    Row("no JSON in facts.json", "report TMP/run -o TMP/out", 3, "facts.json: not JSON",
        spoil("run/facts.json", "{"), "run"),
    Row("a report of another", "resume TMP/run", 5, f"report.md: {DAMAGED}", spoil("run/report.md", "# Mine\n"), "run"),
    Row("no line of a hash", "resume TMP/run", 5, "SHA256SUMS:1: expected a SHA-256",
        spoil("run/SHA256SUMS", "x\n"), "run"),
    Row("a learner that it has not", "compare TMP/run --baseline mamml", 2, "mamml.*Did you mean 'maml'", base="run"),
    Row("a measure that it has not", "compare TMP/run --measure map", 2, "map", base="run"),
    Row("a task that it has not", "report TMP/run -o TMP/out --task demo", 2, "no scores on task 'demo'", base="run"),
    Row("an output that is something else", "report TMP/run -o TMP/run", 5, "run", base="run"),
    Row("jobs of one run", "resume TMP/run --jobs 2", 2, "--jobs is for studies", base="run"),
    Row("not finished", "compare TMP/stopped", 5, "is not finished; continue with", base="stopped"),
    Row("unfinished, no state.json", "resume TMP/stopped", 5, "state.json: the checkpoint is damaged",
        without("stopped/checkpoint/state.json"), "stopped"),
]  # fmt: skip
STUDIES = [
    Row("study.yaml is no YAML", "resume TMP/study", 2, r"study.yaml:\d+: not YAML",
        spoil("study/study.yaml", "a: [1\n"), "study"),
    Row("study.yaml is empty", "compare TMP/study", 2, "study.yaml:1: expected keys",
        spoil("study/study.yaml", ""), "study"),
    Row("a wrong key", "resume TMP/study", 2, r"study.yaml:\d+: .*task.fold: unknown key. Did you mean 'folds'",
        swap("study/study.yaml", "folds:", "fold:"), "study"),
    Row("a cell without its scores", "compare TMP/study", 3, "results.jsonl: missing",
        without("study/cells/zero-shot/fold-0-seed-0/results.jsonl"), "study"),
    Row("no study.yaml", "resume TMP/study", 5, "is no run, distillation or study",
        without("study/study.yaml"), "study"),
]  # fmt: skip
ROWS = [*ENCODERS, *RUNS, *STUDIES]
