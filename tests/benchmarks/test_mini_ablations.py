"""The ablations of the multilingual encoder: what each arm trains, in which order, and the tables of what came out."""

import importlib
import json
from itertools import product
from pathlib import Path
from statistics import fmean

import click
import numpy as np
import pytest
from click.testing import CliRunner

from metasearch.encoders.builtin import tiny
from metasearch.encoders.int8 import WEIGHTS, write_stored
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.metrics.spearman import spearman
from metasearch.runs.folder import RunFolder
from metasearch.runs.questions import QuestionResults
from metasearch.spec.recipe import MaxLength

MINI = Path(__file__).resolve().parents[2] / "benchmarks" / "mini"


@pytest.fixture(autouse=True)
def _beside(monkeypatch):
    monkeypatch.syspath_prepend(str(MINI.parent))
    monkeypatch.syspath_prepend(str(MINI))


@pytest.fixture
def script():
    return importlib.import_module("ablations")


@pytest.fixture
def arms():
    return importlib.import_module("_arms")


@pytest.fixture
def scores():
    return importlib.import_module("_score")


@pytest.fixture
def made():
    return importlib.import_module("_ablation_tables")


@pytest.fixture
def published():
    return importlib.import_module("_published")


@pytest.fixture
def places(arms, tmp_path):
    for name in ("corpus", "data", "vocabulary"):
        (tmp_path / name).mkdir()
    return arms.Places(tmp_path / "out", tmp_path / "corpus", tmp_path / "data", tmp_path / "vocabulary")


TRAINED = (
    "assistant",
    "single-stage",
    "full",
    "without-mcl",
    "without-recurrence",
    "bottleneck-64",
    "bottleneck-256",
    "recurrent-1",
    "recurrent-2",
    "ema",
)


def recipe_of(arms, name, places, steps=(20, 30, 10)):
    config_of = importlib.import_module("_plan").config_of
    return config_of(arms.flags_of(name, arms.Steps(*steps), places)).recipe


@pytest.mark.parametrize("name", TRAINED)
def test_the_flags_of_an_arm_are_a_recipe_that_trains_its_stages_alike(arms, places, name):
    recipe, arm = recipe_of(arms, name, places), arms.ARMS[name]
    assert recipe.chosen == arm.stages
    for stage in arm.stages:
        found = recipe.stages[stage]
        steps = {"assistant": 20, "embedding": 30}.get(stage, 10)
        assert (found.budget.batch, found.budget.steps) == (128, steps * (2 if name == "single-stage" else 1))
        assert not found.dropout
        assert found.max_length == 64
        assert found.outer.optimizer == "lars" if stage == "align" else found.outer.lr == 1e-3


def test_every_arm_is_trained_or_made_by_another(arms):
    assert [name for name, arm in arms.ARMS.items() if arm.stages] == list(TRAINED)
    assert {name: arm.model for name, arm in arms.ARMS.items() if not arm.stages} == {
        "three-stages": "full/3-student/model"
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("without-mcl", {"stages.contrast.options.contrast": "none", "run": ("contrast",)}),
        ("without-recurrence", {"student.repeats": 1}),
        ("bottleneck-64", {"student.bottleneck": 64}),
        ("bottleneck-256", {"student.bottleneck": 256}),
        ("recurrent-1", {"student.recurrent": 1}),
        ("recurrent-2", {"student.recurrent": 2}),
    ],
)
def test_an_ablation_differs_from_the_full_recipe_in_one_thing(arms, places, name, expected):
    found, full = (flat(recipe_of(arms, each, places).model_dump()) for each in (name, "full"))
    differs = {key: value for key, value in found.items() if value != full.get(key)}
    # The values of a stage that an arm does not train are those of the recipe as it ships.
    idle = {key for key in differs if key.startswith(("stages.embedding", "stages.student")) and name == "without-mcl"}
    assert {key: value for key, value in differs.items() if key not in idle} == expected


def test_the_single_stage_begins_with_a_random_table_of_an_untaught_assistant(arms, places):
    recipe = recipe_of(arms, "single-stage", places)
    assert recipe.student.initial == "random"
    assert recipe.stages["contrast"].options["contrast"] == "none"
    flags = arms.flags_of("single-stage", arms.Steps(1, 1, 1), places)
    assert flags[flags.index("--assistant") + 1] == str(places.vocabulary)


def test_a_taught_assistant_is_taken_as_it_is(arms, places, tmp_path):
    given = arms.Places(places.out, places.corpus, places.data, places.vocabulary, tmp_path / "taught")
    assert arms.flags_of("assistant", arms.Steps(1, 1, 1), given) == []
    flags = arms.flags_of("full", arms.Steps(1, 1, 1), given)
    assert flags[flags.index("--assistant") + 1] == str(tmp_path / "taught")


def test_a_value_reaches_the_arms_that_train_its_stage_and_no_others(arms, places):
    value = "stages.contrast.outer.lr=5e-4"
    given = arms.Places(places.out, places.corpus, places.data, places.vocabulary, None, (value,))
    rates = {name: recipe_of(arms, name, given).stages["contrast"].outer.lr for name in ("full", "without-mcl")}
    assert rates == {"full": 5e-4, "without-mcl": 5e-4}
    assert value not in arms.flags_of("ema", arms.Steps(1, 1, 1), given)
    with pytest.raises(ConfigError, match="expected a value of a stage"):
        arms.check_assignments(["student.bottleneck=4"])


def test_an_arm_comes_with_those_that_it_needs(arms):
    assert arms.with_needed(["ema"]) == ["assistant", "full", "ema"]
    assert arms.with_needed(["single-stage"]) == ["single-stage"]


@pytest.mark.parametrize("processes", [1, 3])
def test_arms_are_run_once_each_after_those_that_they_need(script, arms, processes):
    begun, ended = [], []

    def act(name):
        assert set(arms.ARMS[name].needs) <= set(ended)
        begun.append(name)
        ended.append(name)

    script.in_order(list(arms.ARMS), processes, act)
    assert sorted(begun) == sorted(arms.ARMS)


def test_a_failing_arm_ends_the_study(script):
    begun = []

    def act(name):
        begun.append(name)
        if name == "assistant":
            raise DataError("broken")

    with pytest.raises(DataError, match="broken"):
        script.in_order(["assistant", "full"], 1, act)
    assert begun == ["assistant"]


def test_a_run_does_not_go_on_with_other_flags(script, tmp_path):
    folder, kept = tmp_path / "full", tmp_path / "full.flags"
    script.same_flags(kept, ["--steps", "1"], folder)
    script.same_flags(kept, ["--steps", "2"], folder)  # it has not begun
    folder.mkdir()
    (folder / "config.yaml").touch()
    script.same_flags(kept, ["--steps", "2"], folder)
    with pytest.raises(ConfigError, match="begun with other flags"):
        script.same_flags(kept, ["--steps", "3"], folder)


@pytest.mark.parametrize(
    ("row", "mean"),
    [
        ("XLMR_B128_RU3", 82.6),
        ("XLMR_B128_RU6", 83.4),
        ("XLMR_B128_RU12", 84.3),
        ("XLMR_B256_RU3", 82.8),
        ("WITHOUT_MCL", 82.3),
        ("WITHOUT_RECURRENCE", 78.0),
        ("MINILM_B128_RU3", 78.8),
        ("MINILM_B128_RU6", 81.5),
        ("MINILM_B128_RU12", 82.9),
        ("MINILM_B256_RU3", 79.5),
        ("MINILM_ASSISTANT", 83.5),
        ("BEFORE_EMA", 85.2),
        ("AFTER_EMA", 84.8),
    ],
)
def test_rows_of_the_papers_have_the_monolingual_means_that_they_print(published, row, mean):
    assert getattr(published, row).mono == pytest.approx(mean, abs=0.1)


def test_a_cross_lingual_mean_is_over_the_pairs_that_are_published(published):
    assert published.XLMR_B128_RU3.cross == pytest.approx((78.0 + 73.9 + 80.5) / 3)


def test_every_ordering_is_of_arms_that_are_run_and_the_paper_has_it_on_average(arms, published):
    for each in published.ORDERINGS:
        assert {each.better, each.worse} <= set(arms.ARMS)
        for better, worse in each.published.values():
            assert better.mono + better.cross > worse.mono + worse.cross


def test_a_figure_is_the_mean_over_languages_and_an_item_is_drawn_in_all_of_them(scores):
    cells = [("both", "deu", ""), ("both", "tha", "")]
    kept = QuestionResults(
        {cells[0]: ("a", "b", "c"), cells[1]: ("b", "c")},
        {("accuracy", *cells[0]): np.array([1.0, 0.0, 1.0]), ("accuracy", *cells[1]): np.array([1.0, 0.0])},
    )
    found = scores.figure(kept, scores.TESTS["Tatoeba"], "d", 100)
    assert found.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    again = scores.figure(kept, scores.TESTS["Tatoeba"], "d", 100)
    zero = found.above(again)
    assert (zero.value, zero.interval().low, zero.interval().high) == (0, 0, 0)
    with pytest.raises(DataError, match="other test data"):
        found.above(scores.figure(kept, scores.TESTS["Tatoeba"], "other", 100))


def test_a_figure_of_similarity_is_the_mean_correlation_of_its_pairs(scores):
    rng = np.random.default_rng(0)
    names = ("ar-ar", "es-es", "en-en", "ar-en", "tr-en", "es-en")
    cells = {name: ("pairs", name, "") for name in names}
    columns = {(side, *cell): rng.normal(size=30) for cell in cells.values() for side in ("predicted", "gold")}
    kept = QuestionResults({cell: tuple(map(str, range(30))) for cell in cells.values()}, columns)
    each = {name: spearman(columns["predicted", *cell], columns["gold", *cell]) for name, cell in cells.items()}
    for test, of in {"STS mono": names[:3], "STS cross": names[3:], "STS 2017": names}.items():
        assert scores.figure(kept, scores.TESTS[test], "d", 100).value == pytest.approx(fmean(each[n] for n in of))


def test_sizes_are_those_of_the_weights_and_of_the_stored_file(scores, tmp_path):
    encoder = tiny.build(MaxLength(text=16), 0)
    write_stored(encoder, tmp_path)
    content = (tmp_path / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")  # of safetensors: its length, and itself
    found = scores.sizes(encoder)
    assert found["parameters"] == encoder.parameter_count
    assert found["float32_mib"] == 4 * encoder.parameter_count / 2**20
    assert found["int8_mib"] == (len(content) - header) / 2**20


def test_an_ordering_holds_where_the_interval_of_its_difference_is_above_zero(scores, made, published):
    def figures(low, high):
        return {test: scores.Figure((low + high) / 2, np.linspace(low, high, 201), "d") for test in scores.TESTS}

    found = {"full": figures(0.5, 0.5), "worse": figures(0.3, 0.4), "alike": figures(0.4, 0.6)}
    row = published.Published(80, 70)
    orderings = [
        published.Ordering("first", "full", "worse", {"XLM-R": (row, published.Published(79, 68))}),
        published.Ordering("second", "worse", "full", {}, "not in the paper"),
        published.Ordering("third", "full", "alike", {}),
        published.Ordering("not run", "full", "absent", {}),
    ]
    rows = made.ordering_rows(found, orderings)
    assert {row["study"]: row["holds"] for row in rows} == {"first": "yes", "second": "no", "third": "open"}
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in made.ordering_table(rows, orderings).split("\n")
    ]
    assert lines[2][:5] == ["first", "XLM-R +1.0", "XLM-R +2.0", "+15.0", "+15.0"]
    assert lines[2][-1] == "STS yes, Tatoeba yes, LAReQA yes"
    assert lines[3][0] == "second (not in the paper)"


def test_steps_that_fit_are_those_whose_seconds_are_left(arms):
    sums = importlib.import_module("_plan")._sum
    said = sums(total=600.0, slope=12.0, steps=arms.Steps(1, 1, 10), minutes=20, processes=2)
    assert f"--max-steps {10 + (20 * 60 - 600) // 12} it is 20 core-minutes" in said
    assert "10 core-minutes, about 5 minutes with --jobs 2" in said
    assert "too few" in sums(total=600.0, slope=12.0, steps=arms.Steps(1, 1, 10), minutes=1, processes=1)


def test_stages_that_run_the_same_layers_are_timed_once(arms):
    plan = importlib.import_module("_plan")
    assert plan.kinds(["full", "bottleneck-64", "recurrent-1", "without-mcl"]) == [
        ("full", "embedding"),
        ("full", "student"),
    ]
    assert plan.kind("without-recurrence", "contrast") == ("without-recurrence", "student")


def test_rates_are_of_all_encoders_and_in_order(tmp_path):
    rates = importlib.import_module("_rates").rates
    encoder = tiny.build(MaxLength(text=16), 0)
    encoder.save(tmp_path / "model")
    found = rates({"one": tmp_path / "model", "two": tmp_path / "model"}, ["a text", "another"], 2, 1)
    assert set(found) == {"one", "two"}
    for each, kind in product(found.values(), ("wall", "cpu")):
        middle, low, high = each[kind]
        assert 0 < low <= middle <= high


def test_a_finished_study_is_not_run_again_and_its_rows_are_kept_once(script, scores, tmp_path, monkeypatch):
    called = []

    def call(name, command, places, threads):
        called.append((name, command[0]))
        if command[0].endswith("_score.py"):
            _scored(scores, places.folder(name) / "scores", name)

    monkeypatch.setattr(script, "_call", call)
    monkeypatch.setattr(script, "RESULTS", tmp_path / "rows.jsonl")
    monkeypatch.setattr(script, "measure", lambda names, places, rounds, threads: False)
    (tmp_path / "parallel").mkdir()
    flags = ["--data", str(tmp_path), "-o", str(tmp_path / "out"), "--only", "without-mcl", "--resamples", "100"]
    for _ in range(2):
        result = CliRunner().invoke(script.main, flags, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    score = str(MINI / "_score.py")
    distilled = [(name, program) for name in ("assistant", "full", "without-mcl") for program in ("-m", score)]
    assert called == [("vocabulary", "-m"), *distilled]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    tests, orderings = len(scores.TESTS), ("with MCL > without", "assistant > student")
    assert len(rows) == 3 * (tests + 3) + len(orderings) * tests  # three sizes of each arm
    assert {row["study"] for row in rows} == {"assistant", "full", "without-mcl", *orderings}
    assert all(row["steps"]["student"] == 60 and row["revision"] and row["machine"] and row["versions"] for row in rows)
    assert "| full " in result.output
    assert "with MCL > without" in result.output


def test_a_command_that_fails_shows_the_end_of_its_log(script, arms, places):
    places.out.mkdir()
    with pytest.raises(click.ClickException, match=r"arm 'full' ended with exit code 3:\noh\nIts log: .*full\.log"):
        script._call("full", ["-c", "print('oh'); raise SystemExit(3)"], places, 1)


def flat(tree, prefix=""):
    found = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _scored(scores, folder, label):
    """Write what scoring an encoder leaves: items of every task, and sizes."""
    files = RunFolder(folder)
    items = ("1", "2", "3", "4")
    values = np.array([0.1, 0.2, 0.3, 0.4])
    for test in {test.task: test for test in scores.TESTS.values()}.values():
        names = ("predicted", "gold") if test.measure == "spearman" else (test.measure,)
        languages = scores.MONO + scores.CROSS if test.measure == "spearman" else ("de",)
        cells = [(test.pool, language, "") for language in languages]
        kept = QuestionResults(
            {cell: items for cell in cells}, {(name, *cell): values for name in names for cell in cells}
        )
        kept.save(files.queries(test.task, label, "test"), {"data": "d"})
    files.finish("scored", {"parameters": 10, "float32_mib": 2.0, "int8_mib": 1.0})
