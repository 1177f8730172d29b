"""Recipes of several stages: which stages run, which encoders they need, and what contradicts."""

import pytest

from helpers.configs import nested
from helpers.stages import LIBRARY, STAGES
from metasearch.config.distill_run import DistillConfig
from metasearch.encoders.load import load_encoder
from metasearch.pipelines.distill.models import RoleEncoders


@pytest.fixture
def compress():
    return LIBRARY.distillation("compress")


# Which stages run.


@pytest.mark.parametrize(
    ("written", "chosen"),
    [
        ("3", STAGES[2:3]),
        ("2-4", STAGES[1:4]),
        ("1,3", (STAGES[0], STAGES[2])),
        ("3,1", (STAGES[0], STAGES[2])),
        (" 1 , 3-4 ", (STAGES[0], STAGES[2], STAGES[3])),
        ("1-3,2-3", STAGES[:3]),
        ("student,contrast", STAGES[2:]),
        ("assistant,4,", (STAGES[0], STAGES[3])),
    ],
)
def test_a_part_of_the_stages_is_run_in_their_order(compress, written, chosen):
    part = compress.only(written)
    assert part.chosen == part.run == chosen
    assert part.stages == compress.stages


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


def test_what_a_stage_made_of_drawn_weights_is_still_of_that_seed_when_a_run_goes_on(compress, tmp_path):
    config = nested(DistillConfig, recipe=compress, teacher="tiny", assistant="tiny")
    load_encoder("tiny", device="cpu").save(tmp_path)
    goes_on = RoleEncoders(config, {"assistant": "its fingerprint"})
    goes_on.take("assistant", tmp_path)
    at_once = RoleEncoders(config)
    at_once.at("assistant")
    at_once.take("assistant", tmp_path)
    assert goes_on.at("assistant").seeded
    assert at_once.at("assistant").seeded
    given = RoleEncoders(nested(DistillConfig, recipe=compress, teacher="tiny", assistant=str(tmp_path)))
    given.take("assistant", tmp_path)
    assert not given.at("assistant").seeded
