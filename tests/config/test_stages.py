"""Recipes of several stages: which stages run, which encoders they need, and what contradicts."""

import re

import pytest

from helpers.configs import nested
from helpers.declarations import problems
from helpers.stages import LIBRARY, SMALL, STAGES
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Distillation
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


# What contradicts.


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("against: teacher", "against: assistant", "stages.first.against: the assistant cannot be its own frozen"),
        ("against: teacher", "corpus: {dev: 0}", "stages.first.corpus.dev: the dev score needs held-out pairs"),
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
        ("against: teacher", "monitor: cosine", "stages.first.monitor: cosine needs a frozen role"),
        ("against: teacher", "corpus: {pivot: english}", "stages.first.corpus.pivot:"),
        ("bottleneck: 4", "bottleneck: 0", "student.bottleneck: input should be greater than or equal to 1"),
        ("bottleneck: 4", "initial: zeros", "student.initial: input should be 'svd' or 'random'"),
    ],
)
def test_a_contradiction_is_refused_with_its_line(write, old, new, problem):
    text = SMALL.replace(old, new.strip("{}").replace(", ", "\n    ") if new.startswith("{") else new, 1)
    path = write(text)
    messages = problems(path, Distillation)
    assert any(re.match(rf"{re.escape(str(path))}:\d+: {re.escape(problem)}", line) for line in messages), messages
