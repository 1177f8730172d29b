"""`metasearch distill` as a user runs it: four stages from flags to the report, and what bad input is answered with."""

import json

import pytest
from click.testing import CliRunner
from sentence_transformers import SentenceTransformer

from helpers.parallel import (
    DEV,
    FOLDERS,
    PAIRS,
    STAGES,
    distill,
    events,
    flags,
    results,
    save_assistant,
    small,
    write_corpus,
)
from metasearch.algorithms.distill import Distill
from metasearch.cli import main
from metasearch.compress.static import make_static
from metasearch.config.distill_run import DistillConfig
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.factory import load_encoder
from metasearch.runs.folder import RunFolder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A corpus and an assistant."""
    folder = tmp_path_factory.mktemp("distill")
    write_corpus(folder / "corpus")
    save_assistant(folder / "assistant")
    return folder


@pytest.fixture(scope="module")
def whole(place):
    """The four stages, evaluated on two tasks."""
    tasks = ["--evaluate=demo", "--evaluate=demo-sts"]
    return place / "whole", distill(*flags(place, *tasks, steps=5), "-o", place / "whole")


def names(folder):
    return {path.name for path in folder.iterdir()}


def table(report, head):
    """Return the first cell of each row of the table that begins with a head."""
    lines = report.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = lines[start + 2 : lines.index("", start)] if "" in lines[start:] else lines[start + 2 :]
    return {cells[0]: cells[1:] for cells in ([c.strip() for c in row.split("|")[1:-1]] for row in rows)}


@pytest.mark.slow
def test_a_run_has_a_folder_for_each_stage_and_the_model_of_the_last(whole):
    folder, result = whole
    written = {
        "config.yaml",
        "results.jsonl",
        "queries",
        "facts.json",
        "SHA256SUMS",
        "report.md",
        "model",
        "targets",
        ".lock",
    }
    assert names(folder) == {*written, *FOLDERS}
    labels = ["assistant, before", "1 assistant", "2 embedding", "3 student", "4 contrast"]
    assert names(folder / "queries") == {f"{task}.{name}.test.npz" for task in ("demo", "demo-sts") for name in labels}
    for stage in FOLDERS:
        assert names(folder / stage) == {"data.txt", "log.jsonl", "SHA256SUMS", "report.md", "model"}
    assert result.stdout == f"{(folder / 'report.md').read_text()}\nrun: {folder}\n"


@pytest.mark.slow
def test_the_report_has_the_dev_scores_of_every_stage_from_its_log(whole):
    folder, _ = whole
    rows = table((folder / "report.md").read_text(), "stage ")
    assert [row[:3] for row in rows.values()] == [
        ["assistant", "teacher", "accuracy"],
        ["student", "assistant", "cosine"],
        ["student", "assistant", "accuracy"],
        ["student", "teacher", "accuracy"],
    ]
    for stage, row in zip(FOLDERS, rows.values(), strict=True):
        before, after = (event["dev"] for event in events(folder / stage) if "dev" in event)
        assert row[3:] == [f"{100 * before:.2f}", f"{100 * after:.2f}", "5 of 5"]


@pytest.mark.slow
def test_the_results_have_the_dev_score_of_every_stage_once(whole):
    rows = [row for row in results(whole[0]) if row["task"] == "dev"]
    assert [row["learner"] for row in rows] == ["1 assistant", "2 embedding", "3 student", "4 contrast"]
    for stage, row in zip(FOLDERS, rows, strict=True):
        scores = [event["dev"] for event in events(whole[0] / stage) if "dev" in event]
        assert [row["before"], row["value"]] == scores
        assert (row["split"], row["step"], row["steps"]) == ("dev", 5, 5)
    assert [row["measure"] for row in rows] == ["accuracy", "cosine", "accuracy", "accuracy"]


def test_a_run_is_read_back_stage_by_stage_with_what_ranked_where(whole):
    found = read_study([whole[0]], task="demo")
    assert [arm.label for arm in found.arms] == ["assistant, before", *(name.replace("-", " ") for name in FOLDERS)]
    for scored in found.scored:
        for (language, inside), value in scored.values("map", "multilingual").items():
            values = scored.questions.columns["map", "multilingual", language, inside]
            assert value == pytest.approx(sum(values) / len(values), abs=1e-12)
        assert scored.questions.ranking is not None
    assert found.runs[0].facts["device"] == "cpu"


def test_the_configuration_that_is_stored_spells_out_all_options_of_the_learners(whole):
    stored = RunFolder.open(whole[0], DistillConfig)[1].config.recipe.stages
    expected = [
        Distill.Options(output="pooled", target="source"),
        Distill.Options(output="embedding", target="own"),
        Distill.Options(output="pooled", target="own"),
        Distill.Options(output="pooled", target="source", contrast="soft", contrast_weight=1, temperature=5 / 100),
    ]
    for name, options in zip(STAGES, expected, strict=True):
        assert set(stored[name].options) == set(Distill.Options.model_fields)
        assert Distill.Options.model_validate(stored[name].options) == options


def test_the_report_has_the_scores_on_each_task_before_and_after_each_stage(whole):
    report = (whole[0] / "report.md").read_text()
    for head in ("map@20 (test)", "map (test)", "pearson (test)", "spearman (test)"):
        assert list(table(report, head)) == [
            "assistant, before",
            "1 assistant",
            "2 embedding",
            "3 student",
            "4 contrast",
        ]


@pytest.mark.slow
def test_the_scores_of_a_stage_are_those_that_evaluate_gives_its_model(whole, place):
    rows = results(whole[0])
    for label, model in (("assistant, before", place / "assistant"), ("4 contrast", whole[0] / "model")):
        said = CliRunner().invoke(main, ["evaluate", "--encoder", str(model), "--task", "demo", "--json"])
        found = {(row["measure"], row["language"]): row["value"] for row in json.loads(said.stdout)["results"]}
        own = [row for row in rows if row["learner"] == label and row["task"] == "demo"]
        stored = [row for row in own if row["pool"] == "multilingual"]
        assert {(row["measure"], row["language"]): pytest.approx(row["value"], abs=1e-9) for row in stored} == found


def test_plain_sentence_transformers_loads_the_student(whole):
    texts = ["Πόσες χορδές έχει το βιολί;", "hello"]
    plain = SentenceTransformer(str(whole[0] / "model"), device="cpu").encode(texts)
    ours = load_encoder(str(whole[0] / "model"), device="cpu").encode(texts, "text")
    assert plain == pytest.approx(ours, abs=1e-6)


def test_every_stage_says_its_data_its_targets_and_the_size_of_the_student(whole):
    said = whole[1].stderr
    for stage in ("assistant", "embedding", "student", "contrast"):
        assert f"stage {stage}: {2 * PAIRS - 2 * DEV} pairs of en with de, tr from 2 files, {2 * DEV} for dev\n" in said
        assert f"{stage}: step 5 dev " in said
    assert said.count("what is kept already is not computed again") == 4
    assert said.count("made the student: 305,920 parameters of the assistant's 1,191,552") == 1


@pytest.mark.slow
def test_json_prints_one_object_and_nothing_else(place, tmp_path):
    result = distill(*flags(place, "--stages=1", "--json", "--evaluate=demo-sts", steps=1), "-o", tmp_path / "run")
    found = json.loads(result.stdout)
    assert found["run"] == str(tmp_path / "run")
    assert {row["learner"] for row in found["results"]} == {"assistant, before", "1 assistant"}


def test_a_loss_is_printed_as_it_is_and_json_has_dev_scores_where_no_task_is_evaluated(place, tmp_path):
    given = flags(place, "--stages=1", "--set=stages.assistant.monitor=loss", steps=1)
    (row,) = json.loads(distill(*given, "--json", "-o", tmp_path / "run").stdout)["results"]
    assert (row["task"], row["learner"], row["measure"]) == ("dev", "1 assistant", "loss")
    assert row["before"] < row["value"] < 0  # the negative loss, higher is better
    written = [f"{-row['before']:.4f}", f"{-row['value']:.4f}"]
    whole = table((tmp_path / "run/report.md").read_text(), "stage ")
    assert whole["1 assistant"] == ["assistant", "teacher", "loss", *written, "1 of 1"]
    stage = table((tmp_path / "run" / FOLDERS[0] / "report.md").read_text(), "stage ")
    assert stage["dev loss"] == [" → ".join(written)]


@pytest.mark.slow
def test_the_report_names_the_encoders_that_were_used_and_no_others(place, whole, tmp_path):
    student = whole[0] / "3-student/model"
    given = ["--teacher=tiny", f"--student={student}", f"--corpus={place / 'corpus'}", "--stages=4", "--max-steps=1"]
    distill(*given, *small("contrast"), "-o", tmp_path / "run")
    facts = table((tmp_path / "run/report.md").read_text(), "run ")
    assert facts["teacher"] == ["tiny"]
    assert facts["student"] == [str(student)]
    assert "assistant" not in facts


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--recipe=compres"], "unknown distillation 'compres'. Did you mean 'compress'?"),
        (["--stages=5"], "--stages 5: recipe 'compress' has the stages 1 to 4"),
        (["--stages=studnt"], "--stages studnt: no such stage. Did you mean 'student'?"),
        (["--stages=,"], "--stages: expected numbers or names such as 2-4 or contrast"),
        (["--set=stages.student.options.ouput=pooled"], "stages.student: options: ouput: unknown key. Did you mean"),
        (["--set=stages.student.learner=distil"], "unknown learner 'distil'. Did you mean 'distill'?"),
        (["--set=stages.student.learner=maml"], "learner 'maml' learns from episodes; it is run by `metasearch train`"),
        (["--set=stages.student.learner=fine-tune"], "learner 'fine-tune' learns from scored data, not parallel"),
        (
            ["--set=stages.contrast.options.contrast=sfot"],
            "options: contrast: no such contrastive loss. Did you mean 'soft'?",
        ),
        (["--set=stages.contrast.options.temperature=0"], "temperature: input should be greater than 0"),
        (["--set=stages.student.monitor=spearman"], "parallel data has no 'spearman'; known: accuracy, cosine, loss"),
        (["--set=stages.student.max_length=2"], "max_length: input should be greater than or equal to 3"),
        (["--set=stages.student.corpus.dev=0"], "the dev score needs some pairs held out"),
        (["--set=stages.assistant.against=assistant"], "the assistant cannot be its own frozen teacher"),
        (
            ["--set=stages.embedding.options.contrast=soft", *small("embedding", options__output="tokens")],
            "'soft' is over sentences, options.output is not",
        ),
        (["--set=stages.embedding.options.output=tokens"], "monitor: cosine is between vectors of texts"),
        (["--evaluate=dmo"], "unknown task 'dmo'. Did you mean 'demo'?"),
        (["--recipe=ema"], "recipe 'ema': stages.align"),
        (["--max-steps=0"], "0 is not in the range x>=1"),
        (["--corpus=nowhere"], "--corpus nowhere: no such file or folder"),
    ],
)
def test_a_wrong_name_or_value_ends_with_code_2_before_anything_is_written(place, tmp_path, change, says):
    given = flags(place)
    if change == ["--recipe=ema"]:  # whose teacher is no frozen one
        given = [f"--corpus={place / 'corpus'}", f"--student={place / 'assistant'}"]
        change = [*change, "--set=stages.align.against=teacher"]
    assert says in distill(*given, *change, "-o", tmp_path / "run", code=2).stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (["teacher", "corpus"], "its stages need --assistant ENCODER"),
        (["assistant", "corpus"], "its stages need --teacher ENCODER"),
        (["teacher", "assistant"], "stage 'assistant' needs --corpus FILES"),
    ],
)
def test_what_is_missing_is_named_with_its_flag(place, tmp_path, left, says):
    given = [flag for flag in flags(place) if flag.startswith(("--set", *(f"--{name}=" for name in left)))]
    assert says in distill(*given, "-o", tmp_path / "run", code=2).stderr
    assert not (tmp_path / "run").exists()


def test_a_recipe_without_an_assistant_needs_a_student(place, tmp_path):
    args = ["--recipe=ema", f"--corpus={place / 'corpus'}", "-o", tmp_path / "run"]
    assert "recipe 'ema': its stages need --student ENCODER" in distill(*args, code=2).stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ["--set=student.bottleneck=128"],
            "bottleneck 128: the word table has 128 columns; choose a number from 1 to 127",
        ),
        (["--set=student.recurrent=3"], "recurrent 3: 4 layers are no multiple of it; choose 1 or 2 or 4"),
        (["--set=student.recurrent=9"], "recurrent 9: the encoder has 4 layers"),
    ],
)
def test_a_student_that_the_assistant_cannot_be_made_into_is_refused(place, tmp_path, change, says):
    assert says in distill(*flags(place, "--stages=2", *change), "-o", tmp_path / "run", code=2).stderr


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ("--student=nowhere/at/all", 6, "encoder 'nowhere/at/all': no such folder"),
        ("--set=student.recurrent=3", 2, "recurrent 3: 4 layers are no multiple of it"),
    ],
)
def test_what_only_a_later_stage_needs_is_checked_before_the_first_one_trains(place, tmp_path, change, code, says):
    assert says in distill(*flags(place, change), "-o", tmp_path / "run", code=code).stderr
    assert not (tmp_path / "run" / FOLDERS[0] / "log.jsonl").exists()


def test_vectors_of_other_dimensions_than_the_teachers_are_refused(place, tmp_path):
    narrow = save_assistant(tmp_path / "narrow", layers=1, dimensions=32)
    given = flags(place, "--stages=1", f"--assistant={narrow}")
    error = distill(*given, "-o", tmp_path / "run", code=2).stderr
    assert "128 dimensions" in error
    assert "32; they must be the same" in error


def test_tokens_of_other_vocabularies_are_not_compared(place, tmp_path):
    other = save_assistant(tmp_path / "other", extra=["lighthouse-keeper"])
    given = flags(
        place, "--stages=2", f"--student={other}", *small("embedding", options__output="tokens", monitor="loss")
    )
    assert "have different vocabularies; trim first" in distill(*given, "-o", tmp_path / "run", code=2).stderr


def test_a_cosine_needs_targets_to_be_one_to(place, tmp_path):
    given = [f"--student={place / 'assistant'}", f"--corpus={place / 'corpus'}", "--max-steps=1"]
    error = distill("--recipe=ema-small", *given, *small("align", monitor="cosine"), "-o", tmp_path / "run", code=2)
    assert "monitor" in error.stderr
    assert "cosine" in error.stderr


def test_a_dev_part_as_large_as_the_corpus_is_refused(place, tmp_path):
    given = flags(place, "--stages=1", *small("assistant", corpus__dev=PAIRS))
    assert f"dev={PAIRS}: de has {PAIRS} pairs" in distill(*given, "-o", tmp_path / "run", code=3).stderr


def test_a_language_that_the_corpus_has_not_and_a_file_of_another_name_are_refused(place, tmp_path):
    (tmp_path / "text.txt").write_text("a\tb\n")
    for given, says in (
        (flags(place, "--stages=1", "--set=stages.assistant.corpus.pivot=fr"), "neither side is 'fr'"),
        (flags(place, "--stages=1", f"--corpus={tmp_path / 'text.txt'}"), "not named as parallel text"),
    ):
        assert says in distill(*given, "-o", tmp_path / says.replace(" ", "-"), code=3).stderr


def test_a_folder_with_something_else_in_it_is_kept(place, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    error = distill(*flags(place), "-o", tmp_path, code=5).stderr
    assert f"{tmp_path} exists already and is no run; choose another folder with -o" in error
    assert names(tmp_path) == {"mine.txt"}


def test_a_rate_that_blows_up_ends_with_code_4(place, tmp_path):
    given = flags(place, "--stages=1", "--set=stages.assistant.outer.lr=1e38", "--set=stages.assistant.outer.warmup=0")
    assert "nonfinite-step-" in distill(*given, "-o", tmp_path / "run", code=4).stderr


def test_ls_lists_the_recipes_of_several_stages():
    said = CliRunner().invoke(main, ["ls", "distillations"]).stdout
    assert said.startswith("distillations:\n")
    assert {"compress", "ema", "similarity"} <= {line.split()[0] for line in said.splitlines()[1:] if line.strip()}


def test_a_static_student_is_made_of_the_assistant_and_taught(tmp_path):
    write_corpus(tmp_path / "corpus", names=("en-de",))
    roles = ["--recipe=static", "--teacher=tiny", "--assistant=tiny", f"--corpus={tmp_path / 'corpus'}"]
    sizes = ["--set=stages.student.corpus.dev=5", "--set=stages.student.budget.batch=8", "--max-steps=3"]
    result = distill(*roles, *sizes, "-o", tmp_path / "run")
    assert "packing:" not in result.stderr  # nothing is done in a slower way
    model = SentenceTransformer(str(tmp_path / "run/model"), device="cpu")
    assert [type(module).__name__ for module in model] == ["StaticEmbedding", "Normalize"]
    taught, first = load_encoder(str(tmp_path / "run/model")), make_static(load_encoder("tiny"))
    moved = (taught.input.words.weight - first.input.words.weight).detach().abs().amax(1)
    assert 0 < int((moved > 0).sum()) < len(moved)  # rows of words that no text has stay


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("stages.student.options.output=embedding", "a static encoder is a table of word vectors without layers"),
        ("student.recurrent=2", "student.recurrent: a static student has no layers"),
    ],
)
def test_what_a_static_student_does_not_have_is_refused_before_the_run(tmp_path, change, says):
    write_corpus(tmp_path / "corpus", names=("en-de",))
    roles = ["--recipe=static", "--teacher=tiny", "--assistant=tiny", f"--corpus={tmp_path / 'corpus'}"]
    result = CliRunner().invoke(main, ["distill", *roles, f"--set={change}", "-o", str(tmp_path / "run")])
    assert result.exit_code in (2, 6)
    assert says in result.stderr
    assert not (tmp_path / "run").exists()
