"""Wrong options, values and names on the command line of every command."""

import shlex
from collections.abc import Iterator

from malformed.row import Row

SOUND = {"train": "train --mode mono-bi --encoder tiny -o TMP/out", "show": "show demo", "ls": "ls tasks"}
"""Command lines that are in order, as far as their options go: all commands share what reads options."""
MISSPELT = {"train": ("--learnr", "--learner"), "show": ("--modes", "--mode"), "ls": ("--includes", "--include")}
VALUED = {"train": "--task", "show": "--recipe", "ls": "--include"}
VALUES = [
    ("train --mode trans --recipe reptile --learner maml", "recipe 'reptile' is for learner 'reptile', not 'maml'"),
    ("train --mode trans --learner maml-align", "3 links, such as mono -> bi -> multi; 'el_el -> el_ar' has 2"),
    ("train --mode trans --set outer.rl=1", r"outer.rl: unknown key\. Did you mean 'lr'"),
    ("train --mode trans --set options.inner_step=2", r"inner_step: unknown key\. Did you mean 'inner_steps'"),
    ("train --mode trans --set budget.meta_train=0 --set budget.meta_valid=0", "there is nothing to train on"),
    ("train --mode trans --set labels=8", "labels=8 limits only train, but meta-valid would use labels of dev"),
    ("train --mode trans --set labels=0", "labels: input should be greater than or equal to 1"),
    ("train --mode trans --set 'budget={epochs: 1}' --set budget.epochs=3", "budget.epochs is part of budget; omit"),
    ("evaluate --task demo --prompt 'text=query: '", "--prompt text=…: task 'demo' has no such role; it has query"),
    ("evaluate --prompt query=a --prompt question=b", "'question=b': the role already has the prompt 'a'"),
    ("train --mode mono-bi --max-steps 0", "'--max-steps': 0 is not in the range x>=1"),
    ("train --mode mono-bi --seed -1", "'--seed': -1 is not in the range 0<="),
    ("train --mode mono-bi --prompt passage:", "'passage:': expected ROLE=TEXT"),
    ("train --mode mono-bi --prompt passage=a", "no role 'passage'.* Known: document, query, text"),
    ("train --mode mono-bi --encoder tiny --trim-vocab xx", "unknown language to trim to 'xx'"),
    ("train --mode mono-bi --encoder tiny --set outer", "--set outer: expected KEY=VALUE"),
    ("train --mode mono-bi --encoder tiny --set outer.lr=[1", r"--set .*expected a list such as \[de, fr\]"),
    ("train --mode mono-bi --encoder tiny --set outer.lr.x=1", "outer.lr"),
    ("train --mode mono-bi --encoder tiny --set budget.meta_batch=0", "budget.meta_batch: "),
    ("train --mode mono-bi --encoder tiny --set options.inner_steps=-1", "inner_steps: "),
    ("train --mode mono-bi --encoder tiny --fold 7", "fold 7 is out of range; the task has folds 0 to 4"),
    ("train", "--mode is missing; one of bi-multi"),
    ("train --mode mono-bi now", "unexpected extra argument .now"),
    ("train --mode mono-bi --task stsb-en", "unknown task 'stsb-en'. Did you mean 'stsb'"),
    ("train --mode mono-bi --learner maml2", "unknown learner 'maml2'. Did you mean 'maml'"),
    ("train --mode mono-bi --task tatoeba --data TMP", "task 'tatoeba' is for evaluation only"),
    ("evaluate --encoder tiny --pool all", "'--pool': unknown choice 'all'"),
    ("evaluate --encoder tiny --task demo-sts --pool bilingual", "--pool is for retrieval; task 'demo-sts'"),
    ("crossval --mode mono-bi --encoder tiny --folds a -o TMP/out", "--folds.*a"),
    ("crossval --mode mono-bi --encoder tiny --folds 0 -o TMP/out", "--folds"),
    ("crossval --mode mono-bi --encoder tiny --folds 99999999999 -o TMP/out", "5 folds, 0 to 4"),
    ("crossval --mode mono-bi --encoder tiny --set x:outer.lr=1 -o TMP/out", "--set x:outer.lr=1"),
    ("distill --recipe aling -o TMP/out", "unknown (distillation|recipe).* 'aling'. Did you mean 'align'"),
    ("distill --recipe align --stages 3 -o TMP/out", "--stages 3"),
    ("distill --recipe align --stages 2-1 -o TMP/out", "--stages 2-1"),
    ("distill --recipe align --teacher tiny --student tiny -o TMP/out", "stage 'align' needs --corpus FILES"),
    ("distill --recipe align --student tiny --corpus TMP -o TMP/out", "teacher"),
    ("distill --recipe align --teacher tiny --student tiny --corpus TMP --scored TMP -o TMP/out", "--scored: no sel"),
    ("compress tiny -o TMP/out", "--bottleneck|nothing"),
    ("compress tiny --recurrent 9 -o TMP/out", "recurrent.*9|9 layers"),
    ("compress tiny --layers a -o TMP/out", "'--layers'"),
    ("compress tiny --layers 0,9 -o TMP/out", "layer"),
    ("compress tiny --recurrent 1 --vocabulary 100 -o TMP/out", "--vocabulary 100 needs --trim-vocab"),
    ("neutralise tiny -o TMP/out", "--texts|--task"),
    ("export tiny --sentence-transformers --int8 -o TMP/out", "--sentence-transformers|--int8"),
    ("export tiny --sentence-transformers --onnx -o TMP/out", "--sentence-transformers and --onnx cannot be combined"),
    ("export tiny --onnx --int8 -o TMP/out", "--onnx --int8 went: call quantize_dynamic of onnxruntime"),
    ("export tiny --sentence-transformers --dimensions 128 -o TMP/out", "dimensions 128: vectors have 128 numbers"),
    ("export tiny --sentence-transformers --texts TMP -o TMP/out", "--texts needs --dimensions"),
    ("export tiny --sentence-transformers --fold 1 -o TMP/out", "--fold: no task is read"),
    ("card TMP/run", "card went; the card is model/README.md"),
    ("validate demo", "validate went; use metasearch show TASK --check"),
    ("prepare data -o TMP/out", "prepare went; OpusFilter cleans translations"),
    ("evaluate --shots 4", "--shots went; metasearch adapt learns from few labels"),
    ("neutralise tiny --task demo --evaluate demo -o TMP/out", "--evaluate went; use metasearch evaluate --task TASK"),
    ("compare TMP/run --confidence 1", "level"),
    ("compare TMP/run --format csv", "--format went; metasearch report writes tables as LaTeX and CSV"),
    ("compare", "Missing argument 'STUDY_OR_RUN...'"),
    ("show demoo", "no task, mode, recipe or distillation 'demoo'. Did you mean 'demo'"),
    ("show maml --mode mono-bi", "--mode needs a task; 'maml' is a recipe"),
    ("show maml --check", "--check needs a task; 'maml' is a recipe"),
    ("show demo --data x", "--data: no data is read; pass --mode or --check"),
    ("ls tasks --include TMP/nowhere", "--include .*nowhere: no such folder"),
    ("trian --mode mono-bi", "no command 'trian'. Did you mean 'train'"),
    (
        "serve qdrant://ada:s3cret@h/help --port 0",
        "qdrant://ada@h/help: unknown store .* Copies in Qdrant are gone: use",
    ),
    *(
        (
            f"search {name}://ada:s3cret@h/help key",
            f"{name}://ada@h/help: unknown store .* Copies in Qdrant are gone: use",
        )
        for name in ("qdrant", "qdrants")
    ),
]
PLACES = [
    ("neutralise tiny --task demo --languages xx,de -o TMP/out", 3, "the train part has no texts of language 'xx'"),
    ("resume TMP/run", 5, "run does not exist"),
    ("resume TMP", 5, "is no run, distillation or study"),
    ("compare TMP/run", 5, "run does not exist"),
    ("compare TMP", 5, "is no study and no run: no study.yaml, no config.yaml"),
    ("export TMP/nowhere --sentence-transformers -o TMP/out", 6, "nowhere': no such folder"),
    ("evaluate --encoder TMP/nowhere -o TMP/new/scores.jsonl", 6, "nowhere': no such folder"),
    ("evaluate --encoder tinny", 6, "unknown encoder 'tinny'. Did you mean 'tiny'"),
    ("train --mode mono-bi --encoder minilmm", 6, "unknown encoder 'minilmm'. Did you mean 'minilm'"),
    ("evaluate --encoder tiny --task lareqa --data TMP/nowhere", 3, "nowhere: no such folder"),
    ("show lareqa --check --data TMP", 3, "no files of task 'lareqa'"),
    ("train --mode mono-bi --encoder tiny -o /dev/null/out", 5, "/dev/null/out.*(cannot be written|exists already)"),
    ("report TMP -o TMP/out", 5, "is no study and no run"),
    (f"evaluate --encoder tiny --include TMP/{'x' * 300}", 5, "File name too long"),
    (f"resume TMP/{'x' * 300}", 5, "File name too long"),
    (f"report TMP/run -o TMP/{'x' * 300}", 5, "File name too long"),
]


def _anywhere() -> Iterator[Row]:
    """Yield what can be wrong with the options of any command."""
    for command, line in SOUND.items():
        wrong, right = MISSPELT[command]
        yield Row(f"{wrong} for {right}", f"{line} {wrong}", 2, f"No such option.*{wrong}.*{right}")
        words = shlex.split(line)
        words[-1] = "''"
        yield Row("the last word is empty", " ".join(words), 2, "is empty; omit it or give it a value")
    for command, option in VALUED.items():
        line = SOUND[command]
        yield Row(f"{option} without a value", f"{line} {option}", 2, f"Option '{option}' requires an argument")
        yield Row(f"{option} with an empty value", f"{line} {option}=", 2, f"{option} is empty; omit it")


ROWS = [
    *_anywhere(),
    *(Row(line.partition(" ")[2] or "nothing", line, 2, says) for line, says in VALUES),
    *(Row(f"{line.partition(' ')[2]}, which is not there", line, code, says, lines=2 if "lareqa" in line else 1)
      for line, code, says in PLACES),
]  # fmt: skip
