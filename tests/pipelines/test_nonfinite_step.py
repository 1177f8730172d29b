"""A step that is not finite: the run stops with code 4, and the texts of the step are in the run folder."""

import pytest

from helpers.commands import metasearch
from helpers.parallel import BATCH, distill, flags, save_assistant, texts, write_corpus
from metasearch.data.benchmark import load_benchmark
from metasearch.runs.rows import read_rows

TOO_FAST = "outer.lr=1e30"
"""A rate that makes weights infinite at the first step, and the loss of the second NaN."""


@pytest.mark.slow
def test_a_training_names_the_episodes_and_saves_their_texts(tmp_path):
    run = tmp_path / "run"
    small = (TOO_FAST, "budget.meta_batch=3", "budget.eval_every=0", "budget.patience=0", "episodes.k=1")
    settings = [word for each in small for word in ("--set", each)]
    wanted = ["--mode", "mono-bi", "--learner", "fine-tune", "--encoder", "tiny", "--device", "cpu", *settings]
    result = metasearch("train", "--task", "demo", *wanted, "--max-steps", 3, "-o", run, code=4)
    saved = run / "nonfinite-step-2.txt"
    assert "error: the meta-train loss at outer step 2 is nan" in result.stderr
    assert "the weights were not updated. Try a smaller rate: outer.lr, or options.inner_lr" in result.stderr
    assert result.stderr.strip().endswith(f"The texts of this step are in {saved}")
    lines = saved.read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split(":")[0] for head in heads] == [f"episode {number} of 3" for number in (1, 2, 3)]
    # The message has the languages of the first episode, and its first example; the file has all texts.
    assert f"of episodes {heads[0].split(': ')[1]} (" in result.stderr
    data = load_benchmark("demo").data
    asked = {question.text for question in data.questions}
    assert {line.split("? ")[1] for line in lines if line.strip().startswith("? ")} <= asked
    assert sum(line.strip().startswith("? ") for line in lines) >= 3 * 2
    assert {row["learner"] for row in read_rows(run / "results.jsonl")} == {"zero-shot"}


@pytest.mark.slow
def test_a_stage_of_a_distillation_saves_its_texts_in_its_own_folder(tmp_path):
    write_corpus(tmp_path / "corpus")
    save_assistant(tmp_path / "assistant")
    wanted = [*flags(tmp_path, "--stages=assistant"), "--set", f"stages.assistant.{TOO_FAST}"]
    said = distill(*wanted, "-o", tmp_path / "run", code=4).stderr
    (saved,) = (tmp_path / "run").glob("1-assistant/nonfinite-step-*.txt")
    assert said.strip().endswith(f"The texts of this step are in {saved}")
    pairs = {f"{one}  |  {other}" for code in ("de", "tr") for one, other in zip(texts("en"), texts(code), strict=True)}
    lines = [line.strip() for line in saved.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == BATCH + 2
    assert set(lines[2:]) <= pairs
