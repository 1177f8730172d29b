"""Recipes of several stages: which stages run, which encoders they need, what contradicts, and those that ship."""

import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from _declarations import line_of, problems
from metasearch.cli import main
from metasearch.data import taskfile
from metasearch.data.library import Library, overrides, shipped
from metasearch.data.stages import Distillation, Stage, Student
from metasearch.distillation.config import DistillConfig
from metasearch.distillation.roles import Roles
from metasearch.distillation.stage import learner_of
from metasearch.engine.run_folder import RunFolder
from metasearch.errors import ConfigError
from metasearch.learners._targets import Wanted
from metasearch.learners.distill import Distill
from metasearch.learners.ema import EMA

LIBRARY = Library()
NAMES = LIBRARY.names("distillation")
STAGES = ("assistant", "embedding", "student", "contrast")
SMALL = """\
recipe: small
description: for a test
student: {bottleneck: 4, recurrent: 2}
stages:
  first:
    description: teaches
    trains: assistant
    against: teacher
    learner: distill
    outer: {lr: 1e-3}
  second:
    description: compresses
    trains: student
    against: assistant
    learner: distill
    options: {output: pooled, target: own}
    outer: {lr: 1e-3}
"""


@pytest.fixture
def compress():
    return LIBRARY.distillation("compress")


@pytest.fixture
def mine(tmp_path):
    """Return a function that writes a recipe into a folder of one's own and returns the folder."""

    def written(text=SMALL, name="small"):
        path = tmp_path / "mine" / "distillation" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path.parents[1]

    return written


def stage(**changed):
    tree = {"description": "d", "trains": "student", "against": "teacher", "learner": "distill", "outer": {"lr": "1"}}
    return Stage.model_validate({key: value for key, value in {**tree, **changed}.items() if value is not None})


# Which stages run.


@pytest.mark.parametrize(
    ("written", "chosen"),
    [
        ("3", STAGES[2:3]),
        ("2-4", STAGES[1:4]),
        ("1-1", STAGES[:1]),
        ("1,3", (STAGES[0], STAGES[2])),
        ("3,1", (STAGES[0], STAGES[2])),
        (" 1 , 3-4 ", (STAGES[0], STAGES[2], STAGES[3])),
        ("1-3,2-3", STAGES[:3]),
        ("student,contrast", STAGES[2:]),
        ("contrast,student,student", STAGES[2:]),
        ("assistant,4,", (STAGES[0], STAGES[3])),
    ],
)
def test_a_part_of_the_stages_is_run_in_their_order(compress, written, chosen):
    found = compress.only(written)
    assert found.chosen == found.run == chosen
    assert found.stages == compress.stages


@given(st.integers(1, 4), st.integers(1, 4))
def test_numbers_count_all_stages_from_1_and_include_both_ends(first, last):
    recipe = LIBRARY.distillation("compress")
    if first <= last:
        assert recipe.only(f"{first}-{last}").chosen == STAGES[first - 1 : last]
    else:
        with pytest.raises(ConfigError, match="has the stages 1 to 4"):
            recipe.only(f"{first}-{last}")


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("0", "--stages 0: recipe 'compress' has the stages 1 to 4"),
        ("5", "--stages 5: recipe 'compress' has the stages 1 to 4"),
        ("2-5", "--stages 2-5: recipe 'compress' has the stages 1 to 4"),
        ("1,4-2", "--stages 4-2: recipe 'compress' has the stages 1 to 4"),
        ("2-", "--stages 2-: no such stage. Known: "),
        ("-2", "--stages -2: no such stage. Known: "),
        ("1-2-3", "--stages 1-2-3: no such stage. Known: "),
        ("studnt", "--stages studnt: no such stage. Did you mean 'student'?"),
        ("1,contrats", "--stages contrats: no such stage. Did you mean 'contrast'?"),
        ("²", "--stages ²: no such stage. Known: "),
        ("", "--stages: expected numbers or names such as 2-4 or contrast"),
        (" , ", "--stages: expected numbers or names such as 2-4 or contrast"),
    ],
)
def test_a_stage_that_is_not_there_is_refused_with_the_right_ones(compress, written, says):
    with pytest.raises(ConfigError) as caught:
        compress.only(written)
    assert str(caught.value).startswith(says)


def test_without_a_choice_all_stages_run_and_numbers_count_those_left_out_too(compress):
    assert (compress.run, compress.chosen) == ((), STAGES)
    baseline = LIBRARY.distillation("compress-single-stage")
    assert baseline.chosen == ("contrast",)
    assert baseline.only("3").chosen == ("student",)


def test_run_keeps_the_order_of_the_stages_however_it_is_written(mine):
    folder = mine(SMALL + "run: [second, first]\n")
    assert Library([folder]).distillation("small").chosen == ("first", "second")


# Who takes part.


@pytest.mark.parametrize(
    ("stages", "student_given", "roles"),
    [
        ("1-4", False, ("teacher", "assistant")),
        ("1", False, ("teacher", "assistant")),
        ("2", False, ("assistant",)),
        ("2-3", True, ("assistant",)),
        ("4", False, ("teacher", "assistant")),  # of which the student is made
        ("4", True, ("teacher",)),
    ],
)
def test_the_encoders_that_must_be_given_are_those_of_the_chosen_stages(compress, stages, student_given, roles):
    assert compress.only(stages).roles(student_given) == roles


def test_a_student_that_is_not_made_must_be_given():
    recipe = LIBRARY.distillation("ema")
    assert recipe.student is None
    assert recipe.roles(student_given=False) == ("student",)
    assert recipe.roles(student_given=True) == ()


@pytest.mark.parametrize(
    ("recipe", "stages", "given_roles", "missing"),
    [
        ("compress", "1-4", {"assistant": "tiny"}, "teacher"),
        ("compress", "1-4", {"teacher": "tiny"}, "assistant"),
        ("compress", "4", {"teacher": "tiny"}, "assistant"),
        ("ema", "1", {"teacher": "tiny", "assistant": "tiny"}, "student"),
    ],
)
def test_an_encoder_that_is_missing_is_named_with_its_flag(recipe, stages, given_roles, missing):
    config = DistillConfig(recipe=LIBRARY.distillation(recipe).only(stages), **given_roles)
    with pytest.raises(ConfigError, match=f"^recipe '{recipe}': its stages need --{missing} ENCODER$"):
        Roles(config)


def test_a_configuration_knows_its_encoders_by_role(compress):
    config = DistillConfig(recipe=compress, teacher="t", assistant="a")
    assert [config.named(role) for role in ("teacher", "assistant", "student")] == ["t", "a", None]


# What contradicts.


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("against: teacher", "against: assistant", "stages.first.against: the assistant cannot be its own frozen"),
        ("against: teacher", "against: student", "stages.first.against: input should be 'teacher' or 'assistant'"),
        ("trains: assistant", "trains: teacher", "stages.first.trains: input should be 'assistant' or 'student'"),
        ("against: teacher", "corpus: {dev: 0}", "stages.first.corpus.dev: the dev score needs some pairs held out"),
        (
            "against: teacher",
            "monitor: spearman",
            "stages.first.monitor: parallel data has no 'spearman'; known: accuracy, cosine, loss",
        ),
        (
            "against: teacher",
            "data: scored",
            "stages.first.monitor: scored data has no 'accuracy'; known: spearman, loss",
        ),
        (
            "against: teacher",
            "{data: entailment, monitor: spearman}",
            "stages.first.monitor: entailment data has no 'spearman'; known: loss",
        ),
        ("against: teacher", "monitor: cosine", "stages.first.monitor: cosine is that to the vectors of a frozen role"),
        ("against: teacher", "max_length: 2", "stages.first.max_length: input should be greater than or equal to 3"),
        ("against: teacher", "corpus: {pivot: english}", "stages.first.corpus.pivot:"),
        ("bottleneck: 4", "bottleneck: 0", "student.bottleneck: input should be greater than or equal to 1"),
        ("bottleneck: 4", "initial: zeros", "student.initial: input should be 'svd' or 'random'"),
        ("lr: 1e-3", "lr: 0", "stages.first.outer.lr: input should be greater than 0"),
    ],
)
def test_a_contradiction_is_refused_with_its_line(write, old, new, problem):
    text = SMALL.replace(old, new.strip("{}").replace(", ", "\n    ") if new.startswith("{") else new, 1)
    path = write(text)
    found = problems(path, Distillation)
    assert any(re.match(rf"{re.escape(str(path))}:\d+: {re.escape(problem)}", line) for line in found), found


def test_a_stage_to_run_that_is_not_there_is_refused_with_its_line_and_the_nearest(write):
    path = write(SMALL + "run: [frist]\n")
    (problem,) = problems(path, Distillation)
    assert problem.startswith(f"{line_of(path, 'run:')}: run: no stage 'frist'. Did you mean 'first'?")


def test_a_recipe_without_stages_is_refused(write):
    path = write("recipe: small\ndescription: for a test\nstages: {}\n")
    (problem,) = problems(path, Distillation)
    assert problem.startswith(f"{path}:3: stages: ")


def test_a_misspelt_key_of_a_stage_is_refused_with_its_line(write):
    path = write(SMALL.replace("against: teacher", "agianst: teacher"))
    (problem,) = problems(path, Distillation)
    assert problem.startswith(f"{line_of(path, 'agianst')}: stages.first.agianst: unknown key.")


# The learner of a stage.


def test_the_learner_its_options_and_the_targets_it_wants_are_known_before_weights_are_loaded():
    kind, options, wanted = learner_of(stage(options={"output": "embedding", "target": "own"}), "here")
    assert kind is Distill
    assert (options.output, options.target, options.contrast_weight) == ("embedding", "own", 1)
    assert wanted == Wanted("embedding", translations=True)
    kind, options, wanted = learner_of(stage(learner="ema", against=None, options={"tau": "0.5"}), "here")
    assert (kind, options.tau, wanted) == (EMA, 0.5, None)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"learner": "distil"}, "unknown learner 'distil'. Did you mean 'distill'?"),
        ({"learner": "maml"}, "here: learner 'maml' learns from episodes; it is run by `metasearch train`"),
        (
            {"learner": "maml", "data": "scored", "monitor": "loss", "against": None},
            "here: learner 'maml' learns from episodes; it is run by `metasearch train`",
        ),
        ({"options": {"temprature": "1"}}, "here: options: temprature: unknown key. Did you mean 'temperature'?"),
        ({"options": {"temperature": "0"}}, "here: options: temperature: input should be greater than 0 (got '0')"),
        ({"options": {"output": "tokens"}}, "options.output: tokens of a translation have no counterpart"),
        ({"against": None}, "here: learner 'distill' needs a frozen role to learn from, under `against`"),
        ({"learner": "ema"}, "here: learner 'ema' takes no targets; leave out `against`"),
        (
            {"options": {"output": "tokens", "target": "own"}, "monitor": "cosine"},
            "here: monitor: cosine is between vectors of texts; options.output is tokens",
        ),
    ],
)
def test_a_learner_that_does_not_fit_its_stage_is_refused(changed, says):
    with pytest.raises(ConfigError) as caught:
        learner_of(stage(**changed), "here")
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("learner", "reads", "data", "against"),
    [
        ("distill", "parallel", "scored", "teacher"),
        ("distill", "parallel", "entailment", "teacher"),
        ("ema", "parallel", "scored", None),
        ("ema", "parallel", "entailment", None),
        ("entailment", "entailment", "parallel", None),
        ("entailment", "entailment", "scored", None),
        ("fine-tune", "scored", "parallel", None),
    ],
)
def test_a_learner_and_data_of_another_kind_are_refused_before_weights_are_loaded(learner, reads, data, against):
    with pytest.raises(ConfigError, match=f"^here: learner '{learner}' learns from {reads} data, not {data}$"):
        learner_of(stage(learner=learner, data=data, against=against, monitor="loss"), "here")


def test_fine_tuning_learns_from_scored_pairs():
    assert learner_of(stage(learner="fine-tune", data="scored", monitor="spearman", against=None), "here")[2] is None


# Recipes that ship.


def leaves(tree, at=""):
    """Return every value of a tree by its dotted key."""
    if not isinstance(tree, dict):
        return {at: tree}
    found = {}
    for name, branch in tree.items():
        found.update(leaves(branch, f"{at}.{name}".strip(".")))
    return found


def values_of(recipe):
    return leaves(recipe.model_dump(exclude={"sources", "recipe", "description"}))


def said_of(recipe, key):
    """Return the source of the longest key that leads to a value; of two as long, that which names the stage.

    A key below `stages` may leave out the name of the stage: it is that of all stages.
    """
    parts = key.split(".")
    found = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    if parts[0] == "stages":
        rest = [".".join(["stages", *parts[2:n]]) for n in range(len(parts), 2, -1)]
        found = [one for pair in zip(found, rest, strict=False) for one in pair] + found[len(rest) :]
    return next((recipe.sources[prefix] for prefix in found if prefix in recipe.sources), None)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_that_ships_is_whole_and_each_learner_takes_its_options(name):
    recipe = LIBRARY.distillation(name)
    for key, found in recipe.stages.items():
        kind, options, wanted = learner_of(found, f"stage '{key}'")
        assert options.model_fields_set == set(found.options)
        assert 1 in kind.links
        assert (wanted is None) == (found.against is None)
    assert recipe.chosen


@pytest.mark.parametrize("name", NAMES)
def test_a_source_belongs_to_a_value_of_the_recipe(name):
    recipe = LIBRARY.distillation(name)
    keys = list(values_of(recipe))
    keys += [".".join(["stages", *key.split(".")[2:]]) for key in keys if key.startswith("stages.")]
    written = [key for key in recipe.sources if key != "recipe"]
    assert [one for one in written if not any(key == one or key.startswith(f"{one}.") for key in keys)] == []
    assert all(recipe.sources.values())


def base_of(name):
    text = (shipped() / "distillation" / f"{name}.yaml").read_text(encoding="utf-8")
    found = re.search("^include: (.+)$", text, re.MULTILINE)
    return found and found[1]


@pytest.mark.parametrize("name", [name for name in NAMES if base_of(name)])
def test_a_value_that_a_recipe_changes_is_not_credited_to_the_source_of_the_old_one(name):
    recipe, base = LIBRARY.distillation(name), LIBRARY.distillation(base_of(name))
    old, new = values_of(base), values_of(recipe)
    changed = [key for key in new if new[key] != old.get(key) and not key.endswith(".description")]
    assert changed
    assert [key for key in changed if said_of(base, key) and said_of(recipe, key) == said_of(base, key)] == []


@pytest.mark.parametrize(
    ("name", "trains", "against", "options"),
    [
        ("assistant", "assistant", "teacher", {"output": "pooled", "target": "source"}),
        ("embedding", "student", "assistant", {"output": "embedding", "target": "own"}),
        ("student", "student", "assistant", {"output": "pooled", "target": "own"}),
        ("contrast", "student", "teacher", {"output": "pooled", "target": "source", "contrast": "soft"}),
    ],
)
def test_the_four_stages_are_those_of_the_paper(compress, name, trains, against, options):
    """Section 3.2: who learns from whom, and equations 2, 3, 4 and 7."""
    found = compress.stages[name]
    assert (found.trains, found.against) == (trains, against)
    assert found.options.items() >= options.items()
    assert (found.outer.lr, found.outer.warmup, found.budget.batch) == (2e-5, 0.1, 64)
    assert found.budget.epochs == (60 if name == "contrast" else 20)


def test_the_papers_student_has_a_bottleneck_of_128_and_three_layers(compress):
    assert compress.student == Student(bottleneck=128, recurrent=3, repeats=None, initial="svd")
    assert LIBRARY.distillation("compress-paper").student.initial == "random"


@pytest.mark.parametrize(
    ("name", "contrast", "repeats"),
    [
        ("compress", "soft", None),
        ("compress-without-mcl", "none", None),
        ("compress-without-recurrence", "soft", 1),
        ("compress-without-both", "none", 1),
    ],
)
def test_an_ablation_leaves_out_what_it_is_named_after_and_nothing_else(name, contrast, repeats):
    recipe = LIBRARY.distillation(name)
    assert (recipe.stages["contrast"].options["contrast"], recipe.student.repeats) == (contrast, repeats)
    new, old = values_of(recipe), values_of(LIBRARY.distillation("compress"))
    allowed = {"student.repeats", "stages.contrast.options.contrast"}
    assert {key for key in new if new[key] != old[key]} <= allowed


# By name, and printed.


def test_a_recipe_is_found_by_name_with_values_put_over_it(compress):
    changed = overrides(["student.bottleneck=64", "stages.contrast.options.contrast=bool", "stages.student.outer.lr=1"])
    found = LIBRARY.distillation("compress", changed)
    assert (found.student.bottleneck, found.stages["contrast"].options["contrast"]) == (64, "bool")
    assert found.stages["student"].outer.lr == 1
    assert found.stages["student"].outer.eps == compress.stages["student"].outer.eps
    assert found.stages["assistant"] == compress.stages["assistant"]


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("student.botleneck=64", "--set: student.botleneck: unknown key. Did you mean 'bottleneck'?"),
        ("stages.contrast.corpus.dve=1", "--set: stages.contrast.corpus.dve: unknown key. Did you mean 'dev'?"),
        ("stages.contrast.outer.lr=fast", "--set: stages.contrast.outer.lr: input should be a valid number"),
        ("stages.contrats.outer.lr=1", "--set stages.contrats: no such stage. Did you mean 'contrast'?"),
    ],
)
def test_a_wrong_value_put_over_a_recipe_is_refused(assignment, says):
    with pytest.raises(ConfigError) as caught:
        LIBRARY.distillation("compress", overrides([assignment]))
    assert says in str(caught.value)


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"^unknown distillation 'compres'\. Did you mean 'compress'\?"):
        LIBRARY.distillation("compres")


def test_recipes_of_ones_own_stand_beside_those_that_ship(mine):
    folder = mine()
    library = Library([folder])
    assert library.names("distillation") == sorted([*NAMES, "small"])
    assert list(library.distillation("small").stages) == ["first", "second"]
    mine(SMALL, "other")
    with pytest.raises(ConfigError, match="distillation: 'small' must be the file's name, 'other'"):
        Library([folder]).distillation("other")
    mine(SMALL, "compress")
    with pytest.raises(ConfigError, match="distillation 'compress' is declared already in"):
        Library([folder])


def shown(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout if code == 0 else result.stderr


def test_ls_lists_each_recipe_with_its_description():
    lines = shown("ls", "distillations").splitlines()
    assert lines[0] == "distillations:"
    listed = [line.strip().split(maxsplit=1) for line in lines[1:]]
    assert listed == [[name, LIBRARY.distillation(name).description] for name in NAMES]


@pytest.mark.parametrize("name", ["compress", "ema"])
def test_what_show_prints_is_the_recipe(name, write):
    assert taskfile.read(write(shown("show", name)), Distillation) == LIBRARY.distillation(name)


def test_show_prints_that_a_part_is_left_whole(mine, write):
    """Nothing in place of a number is not the default number."""
    folder = mine(SMALL.replace("bottleneck: 4", "bottleneck: null"))
    recipe = Library([folder]).distillation("small")
    assert (recipe.student.bottleneck, recipe.student.recurrent) == (None, 2)
    assert taskfile.read(write(shown("show", "small", "--include", folder), "printed"), Distillation) == recipe


def test_show_answers_a_wrong_name_with_the_nearest_of_all_kinds():
    says = shown("show", "compres", code=2)
    assert "no task, mode, recipe or distillation 'compres'. Did you mean 'compress'?" in says


def test_a_mode_does_not_go_with_a_recipe_of_stages():
    assert "--mode goes with a task; 'compress' is a distillation" in shown("show", "compress", "--mode", "x", code=2)


# config.yaml.


@pytest.mark.parametrize("name", NAMES)
def test_a_configuration_is_read_back_as_it_was_written(tmp_path, name):
    recipe = LIBRARY.distillation(name)
    config = DistillConfig(
        recipe=recipe.only(str(len(recipe.stages))),
        teacher="null",
        assistant="/a b/12",
        corpus=("/data/γλώσσα: x", "no"),
        evaluate=("demo",),
        seed=7,
        max_steps=3,
    )
    RunFolder.create(tmp_path / "run", config, "", "distill")
    _, found, fingerprint = RunFolder.open(tmp_path / "run", DistillConfig)
    assert found == config
    assert fingerprint == ""


def test_parts_that_are_left_whole_are_so_after_a_resume(tmp_path, compress):
    whole = Student(bottleneck=None, recurrent=None, repeats=None)
    config = DistillConfig(recipe=compress.model_copy(update={"student": whole}), max_steps=None)
    RunFolder.create(tmp_path / "run", config, "", "distill")
    assert RunFolder.open(tmp_path / "run", DistillConfig)[1].recipe.student == whole


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_that_is_dumped_is_read_back_equal(write, name):
    recipe = LIBRARY.distillation(name)
    assert taskfile.read(write(taskfile.dump(recipe.model_dump(mode="json"))), Distillation) == recipe
