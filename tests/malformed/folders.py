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
        _encoder(base, "no module in modules.json", spoil(f"{base}/modules.json", "[]"), "expected a JSON list"),
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
    ("no config.yaml", "resume", 5, "it has neither config.yaml nor study.yaml", without("run/config.yaml")),
    ("config.yaml is no YAML", "resume", 2, r"config.yaml:\d+: not YAML", spoil("run/config.yaml", "a: [1\n")),
    ("config.yaml is empty", "resume", 2, "config.yaml:1: expected keys", spoil("run/config.yaml", "")),
    ("config.yaml of nothing", "resume", 2, "config: missing key", spoil("run/config.yaml", "a: b\n")),
    ("no results.jsonl", "compare", 3, "missing, though the run is finished", without("run/results.jsonl")),
    ("a score that is a text", "compare", 3, "results.jsonl:2: value: \"1\" is no number",
        swap("run/results.jsonl", '"value": ', '"value": "1", "was": ')),
    ("a score of NaN", "compare", 3, "results.jsonl:2: value: nan is not finite",
        swap("run/results.jsonl", '"value": ', '"value": NaN, "was": ')),
    ("facts that are a text", "compare", 3, "results.jsonl:1: not a score",
        swap("run/results.jsonl", '{"facts": {', '{"facts": "", "was": {')),
    ("no JSON in facts.json", "report -o TMP/out", 3, "facts.json: not JSON", spoil("run/facts.json", "{")),
    ("a report of another", "resume", 5, f"report.md: {DAMAGED}", spoil("run/report.md", "# Mine\n")),
    ("no line of a hash", "resume", 5, "SHA256SUMS:1: expected a SHA-256", spoil("run/SHA256SUMS", "x\n")),
    ("a learner that it has not", "compare --baseline mamml", 2, "mamml.*Did you mean 'maml'"),
    ("a measure that it has not", "compare --measure map", 2, "map"),
    ("a task that it has not", "report -o TMP/out --task demo", 2, "no scores on task 'demo'"),
    ("an output that is something else", "report -o TMP/run", 5, "run"),
    ("jobs of one run", "resume --jobs 2", 2, "--jobs is for studies"),
]  # fmt: skip
STOPPED = [
    ("not finished", "compare", 5, "is not finished; continue with"),
]  # fmt: skip
STUDIES = [
    ("study.yaml is no YAML", "resume", 2, r"study.yaml:\d+: not YAML", spoil("study/study.yaml", "a: [1\n")),
    ("study.yaml is empty", "compare", 2, "study.yaml:1: expected keys", spoil("study/study.yaml", "")),
    ("a wrong key", "resume", 2, r"study.yaml:\d+: .*task.fold: unknown key. Did you mean 'folds'",
        swap("study/study.yaml", "folds:", "fold:")),
    ("a cell without its scores", "compare", 3, "results.jsonl: missing",
        without("study/cells/zero-shot/fold-0-seed-0/results.jsonl")),
    ("no study.yaml", "resume", 5, "is no run, distillation or study", without("study/study.yaml")),
]  # fmt: skip


def _of(base: str, what: str, line: str, code: int, says: str, given: Given = Row.given) -> Row:
    """Return a row of a command that is given the folder as its last word."""
    return Row(what, f"{line} TMP/{base}", code, says, given, base)


ROWS = [
    *ENCODERS,
    *(_of("run", *each) for each in RUNS),
    *(_of("stopped", *each) for each in STOPPED),
    *(_of("study", *each) for each in STUDIES),
]
