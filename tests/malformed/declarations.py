"""Task, mode, recipe and distillation files with something wrong in them."""

from itertools import pairwise

from malformed.row import Row

TASK = """\
task: small
description: for a test
kind: retrieval
source: {paper: none, url: https://example.org, licence: CC0}
reader: jsonl
languages: [de, el]
encoder: tiny
measures: [map]
monitor: map
arrangements:
  mono -> bi: [de_de -> de_el]
"""
MODE = """\
mode: small
description: for a test
meta_train: [mono -> bi]
meta_valid: [mono -> bi]
"""
RECIPE = """\
recipe: small
description: for a test
learner: maml
episodes: {k: 2, q: 2}
outer: {lr: 1e-3}
budget: {meta_train: 8, epochs: 1}
"""
DISTILLATION = """\
recipe: small
description: for a test
stages:
  align:
    description: for a test
    trains: student
    against: teacher
    learner: distill
    outer: {lr: 1e-3}
"""
KINDS = {
    "task": ("small.yaml", TASK),
    "mode": ("modes/small.yaml", MODE),
    "recipe": ("recipes/small.yaml", RECIPE),
    "distillation": ("distillation/small.yaml", DISTILLATION),
}
SHOW = "show small --include TMP"
OTHER_NAME = "a name that is not the file's"


def _row(kind: str, what: str, text: str | bytes | None, says: str, lines: int = 1) -> Row:
    name = KINDS[kind][0]
    at = name.replace(".", r"\.")
    return Row(f"{kind}, {what}", SHOW, 2, f"{at}{says}", {name: text}, lines=lines)


def _with(kind: str, what: str, old: str, new: str, says: str, lines: int = 1) -> Row:
    text = KINDS[kind][1]
    assert old in text
    return _row(kind, what, text.replace(old, new, 1), says, lines)


def _used(kind: str, what: str, old: str, new: str, line: str, says: str) -> Row:
    """Return a row of a plug-in's name, which is looked up where it is used."""
    name, text = KINDS[kind]
    assert old in text
    return Row(f"{kind}, {what}", f"{line} --include TMP", 2, says, {name: text.replace(old, new, 1)})


def _anywhere(kind: str) -> list[Row]:
    """Return what can be wrong with a file of any kind."""
    text = KINDS[kind][1]
    key = text.partition(":")[0]
    bomb = "a: &a [1, 2]\n" + "".join(f"{y}: &{y} [{', '.join([f'*{x}'] * 9)}]\n" for x, y in pairwise("abcdef"))
    rows = [
        ("empty", "", ":1: expected keys and values"),
        ("no YAML", "a: [1\n", r":\d+: "),
        ("a tab before a key", f"{text}x:\n\ty: 1\n", r":\d+: "),
        ("two documents", f"{text}---\n{text}", r":\d+: "),
        ("not UTF-8", text.encode() + b"note: \xff\n", ": .*UTF-8|:.*utf-8"),
        ("a NUL character", f"{text}note: \0\n", r":\d+: not YAML: "),
        ("a key twice", text + text.splitlines()[1] + "\n", r":\d+: description: duplicate key"),
        ("an unknown key", text.replace("description", "descripton", 1), ":2: descripton: unknown key", 2),
        (OTHER_NAME, text.replace("small", "other", 1), f".*{kind}: 'other' must be the file's name, 'small'"),
        ("a key that is missing", text.replace(f"{key}: small\n", "", 1), f": {key}: missing key"),
        ("an alias of nothing", f"{text}note: *nothing\n", r":\d+: .*alias"),
        ("aliases that make a million values", bomb + text, r":1: .*\(\*name\) expand to over 10,000 values"),
        ("a tag of Python", text.replace("for a", "!!python/name:os.system"), ":2: not YAML: .* tag .*os.system"),
        ("a merge of keys", f"{text}<<: {{a: 1}}\n", r":\d+: .*<<"),
        ("brackets without end", "a: " + "[" * 5000 + "]" * 5000, ":1: not readable: nested too deep"),
        ("an include that is not there", f"include: smal\n{text}", ": include: no file smal.yaml"),
        ("a file that includes itself", f"include: small\n{text}", ": include: small.yaml includes itself"),
        ("a list in place of a text", text.replace("for a test", "[a]", 1), ":2: description: "),
    ]
    return [_row(kind, *each) for each in rows]


OWN = ("an unknown key", OTHER_NAME, "a key that is missing", "a list in place of a text")
"""What a model refuses, and not the reader of YAML, which files of all kinds share."""
TASKS = [
    ("a monitor that is no measure", "monitor: map", "monitor: mrr", ":9: monitor: 'mrr' is not among the measures"),
    ("a language twice", "[de, el]", "[de, de, el]", ":6: languages: 'de' is duplicated"),
    ("no language", "[de, el]", "[]", ":6: languages: "),
    ("no language pairs", "kind: retrieval", "kind: similarity", ": pairs: a similarity task needs language pairs"),
    ("an unknown kind", "retrieval", "retreival", ":3: kind: .*retrieval"),
    ("an arrangement of another pattern", "de_de -> de_el", "de_de -> el_el", ":11: arrangements.*listed under"),
    ("an arrangement of a foreign language", "de_de -> de_el", "de_de -> de_fr", ":11: arrangements.*fr, not a lang"),
    ("an arrangement that is none", "de_de -> de_el", "de_de", ":11: arrangements"),
    ("a pattern that is none", "mono -> bi", "mono -> bo", ":11: arrangements.*bo"),
    ("no arrangements", "arrangements:\n  mono -> bi: [de_de -> de_el]\n", "", ": arrangements: missing key"),
    ("groups in a retrieval task", "encoder", "groups: {a: [de]}\nencoder", ":7: groups: only a translation task has"),
    ("a source without a licence", ", licence: CC0", "", ":4: source.licence: missing key"),
    ("a length of 0", "encoder", "max_length: {question: 0}\nencoder", r":7: max_length\.question: "),
    ("one fold", "encoder", "folds: {method: kfold, k: 1}\nencoder", r":7: folds\.k"),
]
MODES = [
    ("patterns of two lengths", "valid: [mono -> bi]", "valid: [mono -> bi -> multi]", ".*same number of links"),
    ("a pattern that is none", "[mono -> bi]", "[mono -> duo]", ":3: meta_train.*duo"),
    ("no pattern", "[mono -> bi]", "[]", ":3: meta_train: "),
]
RECIPES = [
    ("a rate that is a word", "1e-3", "fast", r":5: outer\.lr: .*valid number.*'fast'"),
    ("a rate below 0", "1e-3", "-1", r":5: outer\.lr: "),
    ("a rate that is not finite", "1e-3", ".inf", r":5: outer\.lr: "),
    ("no examples", "k: 2", "k: 0", r":4: episodes\.k: "),
    ("an unknown key of a section", "epochs: 1", "epoch: 1", r":6: budget\.epoch: unknown key. .* mean 'epochs'"),
    ("true in place of a number", "epochs: 1", "epochs: true", r":6: budget\.epochs: "),
]
DISTILLATIONS = [
    ("a stage outside of stages", "  align:", "  {}\nalign:", ":3: stages: .*\n.*:5: align: unknown key", 2),
    ("data that is none", "learner", "data: paralel\n    learner", r":8: stages\.align\.data: .*parallel"),
    ("a monitor of other data", "learner", "monitor: spearman\n    learner", r":8: stages\.align\.monitor: "),
    ("its own teacher", "student\n    against: teacher", "assistant\n    against: assistant", ":7: .*cannot be its"),
    ("no dev pairs", "learner", "corpus: {dev: 0}\n    learner", r":8: .*corpus.dev: the dev score needs held-out"),
    ("a cosine to nobody", "against: teacher", "monitor: cosine", r":7: .*monitor: cosine needs a frozen role"),
    ("a pivot that is none", "learner", "corpus: {pivot: english}\n    learner", r":8: .*corpus.pivot: "),
    ("other weights", "stages:", "student: {initial: zeros}\nstages:", ":3: student.initial: .*'svd' or 'random'"),
    ("a stage to run that is not there", "stages:", "run: [aline]\nstages:", r":3: run.*aline"),
    ("a batch of 0", "outer", "budget: {batch: 0}\n    outer", r":9: stages\.align\.budget\.batch: "),
]
CHECK = "show small --check"
TRAIN = "train --mode mono-bi --recipe small --encoder tiny -o TMP/out"
DISTIL = "distill --recipe small --teacher tiny --student tiny --corpus TMP -o TMP/out"
PLUG_INS = [
    ("task", "a reader that is not there", "jsonl", "json", CHECK, "unknown reader 'json'. Did you mean 'jsonl'"),
    ("task", "a measure that is not there", "[map]\nmonitor: map", "[mpa]\nmonitor: mpa", CHECK, "mpa"),
    ("task", "a cut-off of 0", "[map]\nmonitor: map", "[map@0]\nmonitor: map@0", CHECK, "map@0"),
    ("task", "a measure without its cut-off", "[map]\nmonitor: map", "[recall]\nmonitor: recall", CHECK, "recall"),
    ("task", "a measure of another kind", "[map]\nmonitor: map", "[pearson]\nmonitor: pearson", CHECK, "pearson"),
    ("recipe", "a learner that is not there", "learner: maml", "learner: mamml", TRAIN, "Did you mean 'maml'"),
    ("recipe", "a loss that is not there", "outer", "loss: {name: tripplet}\nouter", TRAIN, "Did you mean 'triplet'"),
    ("recipe", "an option of another learner", "outer", "options: {alpha: 1}\nouter", TRAIN, "alpha: unknown key"),
    ("distillation", "a learner that is not there", "distill\n", "distil\n", DISTIL, "Did you mean 'distill'"),
    ("distillation", "an option that is none", "outer", "options: {out: 1}\n    outer", DISTIL, "out: unknown key"),
]
ROWS = [
    *(_used(*each) for each in PLUG_INS),
    *_anywhere("recipe"),
    *(row for kind in KINDS if kind != "recipe" for row in _anywhere(kind) if row.what.partition(", ")[2] in OWN),
    *(_with("task", *each) for each in TASKS),
    *(_with("mode", *each) for each in MODES),
    *(_with("recipe", *each) for each in RECIPES),
    *(_with("distillation", *each) for each in DISTILLATIONS),
]
