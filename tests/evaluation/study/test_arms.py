"""What is one way to train and what is another, and how each is called."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.evaluation.study.read import digest, find_arm, labelled, select_settings
from metasearch.evaluation.study.study import Arm

RECIPE = {"recipe": "maml-tiny", "description": "ours", "learner": "maml", "outer": {"lr": "3e-4", "clip": "0.0"}}
CONFIG = {"task": "demo", "mode": "trans", "encoder": "tiny", "recipe": RECIPE, "fold": "0", "seed": "1", "data": None}
ROW = {"learner": "maml", "mode": "trans", "recipe": "maml-tiny", "encoder": "tiny"}
MAML = Arm("maml", "trans", "maml-tiny", "tiny")


def labels(*arms, known=None):
    return [arm.label for arm in labelled(arms, known)]


@pytest.mark.parametrize(
    "change",
    [
        {"fold": "4"},
        {"seed": "7"},
        {"data": "/elsewhere"},
        {"device": "cuda"},
        {"include": ["more"]},
        {"recipe": RECIPE | {"description": "other words", "sources": {"outer.lr": "ours"}}},
    ],
)
def test_fold_seed_place_and_notes_make_no_other_arm(change):
    assert find_arm(ROW, CONFIG | change, "a") == find_arm(ROW, CONFIG, "b")


@pytest.mark.parametrize(
    "change",
    [
        {"max_steps": "7"},
        {"precision": "bf16"},
        {"recipe": RECIPE | {"outer": {"lr": "1e-4", "clip": "0.0"}}},
        {"recipe": RECIPE | {"dropout": "true"}},
    ],
)
def test_every_setting_makes_another_arm(change):
    assert find_arm(ROW, CONFIG | change, "a") != find_arm(ROW, CONFIG, "a")


def test_zero_shot_is_one_arm_in_every_run_of_an_encoder():
    row = ROW | {"learner": ZERO_SHOT}
    assert find_arm(row, CONFIG, "a") == find_arm(row | {"mode": None, "recipe": None}, {"label": ZERO_SHOT}, "b")
    assert find_arm(row, CONFIG, "a").zero_shot
    assert find_arm(row, CONFIG, "a") != find_arm(row | {"encoder": "other"}, CONFIG, "a")


start = st.fixed_dictionaries(
    {},
    optional={
        "prompts": st.dictionaries(st.sampled_from(["question", "candidate"]), st.sampled_from(["", "a: ", "b: "])),
        "trim": st.lists(st.sampled_from(["ar", "de", "th"]), unique=True),
        "trust_remote_code": st.booleans().map(str),
    },
)


@given(start, start, st.sampled_from([ZERO_SHOT, "maml", NEUTRAL]))
def test_an_arm_begins_as_the_encoder_with_the_same_prompts_and_vocabulary(one, other, learner):
    def vectors(config):
        return config.get("prompts", {}), sorted(config.get("trim", ()))

    arm = find_arm(ROW | {"learner": learner}, CONFIG | one, "a")
    before = find_arm(ROW | {"learner": ZERO_SHOT}, CONFIG | other, "b")
    assert arm.begins_as(before) == (vectors(one) == vectors(other))
    assert not arm.begins_as(replace(before, encoder="other"))
    assert not before.begins_as(replace(MAML, start=before.start))


def test_a_score_of_an_encoder_with_its_map_is_not_that_of_the_encoder():
    mapped = CONFIG | {"neutralise": {"rank": "3"}}
    assert find_arm(ROW | {"learner": ZERO_SHOT}, mapped, "a") != find_arm(ROW | {"learner": ZERO_SHOT}, CONFIG, "a")
    assert find_arm(ROW | {"learner": NEUTRAL}, mapped, "a").start == ""


def test_an_encoder_that_was_made_elsewhere_is_known_by_its_label_and_source_whatever_its_path():
    made = {"learner": "compress", "mode": None, "recipe": None}
    one, other = ({**made, "encoder": f"made/seed-{seed}/model"} for seed in (1, 2))
    assert find_arm(one, {}, "a") == find_arm(other, {}, "a")
    assert find_arm(one, {}, "a") != find_arm(one, {}, "b")


def test_a_map_that_is_fitted_on_each_fold_is_one_arm_in_all_studies_and_made_anew_on_each_fold():
    row = {"learner": NEUTRAL, "encoder": "tiny", "mode": None, "recipe": None}
    one, other = (find_arm(row, {"neutralise": {"rank": "3"}, "fold": fold}, source) for fold, source in ("0a", "1b"))
    assert one == other
    assert one != find_arm(row, {"neutralise": {"rank": "2"}, "fold": "0"}, "a")
    others = Arm(ZERO_SHOT, None, None, "tiny"), Arm("student", None, "small", "")
    assert [arm.made_once for arm in (one, *others)] == [False, False, True]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"mode": "mono-bi"}, ["maml (trans)", "maml (mono-bi)"]),
        ({"recipe": "maml"}, ["maml [maml-tiny]", "maml [maml]"]),
        ({"encoder": "mbert"}, ["maml, tiny", "maml, mbert"]),
        ({"source": "study-2"}, ["maml", "maml in study-2"]),
        ({"mode": "mono-bi", "recipe": "maml"}, ["maml (trans)", "maml (mono-bi)"]),
    ],
)
def test_a_label_says_the_first_thing_that_differs(change, expected):
    assert labels(MAML, replace(MAML, **change)) == expected


def settled(*configs):
    """Return arms of configurations, and what is known of their settings."""
    known = [select_settings(config) for config in configs]
    return [replace(MAML, settings=digest(each)) for each in known], {digest(each): each for each in known}


def test_a_setting_that_differs_is_named_with_its_values():
    other = CONFIG | {"recipe": RECIPE | {"outer": {"lr": "1e-4", "clip": "0.0"}}}
    arms, known = settled(CONFIG, other)
    assert labels(*arms, known=known) == ["maml, outer.lr=3e-4", "maml, outer.lr=1e-4"]
    trimmed, known = settled(CONFIG | {"trim": []}, CONFIG | {"trim": ["de", "ar"]})
    assert labels(*trimmed, known=known) == ["maml, trim=none", "maml, trim=ar,de"]
    unset, known = settled(CONFIG, CONFIG | {"prompts": {"question": ""}})
    assert labels(*unset, known=known) == ["maml, prompts.question=none", "maml, prompts.question=''"]


arms = st.builds(
    Arm,
    st.sampled_from(["maml", "fine-tune"]),
    st.sampled_from([None, "trans", "mono-bi"]),
    st.sampled_from([None, "one", "two"]),
    st.sampled_from(["", "tiny", "mbert"]),
    st.sampled_from(["", "0a", "0b"]),
    st.sampled_from(["", "study-1", "study-2"]),
    start=st.sampled_from(["", "1a", "1b"]),
)


@given(st.lists(arms, unique=True, max_size=12))
def test_no_two_arms_have_the_same_label(drawn):
    named = labelled(drawn)
    assert len({arm.label for arm in named}) == len(drawn)
    assert [replace(arm, label="") for arm in named] == drawn
