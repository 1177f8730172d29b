"""Which process this is by its environment, and how many may share the shards of a step."""

import pytest

from metasearch.errors import ConfigError
from metasearch.runs.torchrun_env import Rank, rank, require_alone, require_divides

WHOLE = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in WHOLE:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def put(environment, values):
    for name, value in values.items():
        environment.setenv(name, value)


def test_torchrun_says_number_count_and_number_on_the_machine(environment):
    put(environment, {**WHOLE, "RANK": "3"})
    assert rank() == Rank(number=3, count=4, local=1)


def test_an_environment_that_says_some_of_it_or_no_number_is_refused(environment):
    put(environment, {**WHOLE, "WORLD_SIZE": "two"})
    with pytest.raises(ConfigError, match="WORLD_SIZE=two: the environment variable is not a number"):
        rank()
    environment.delenv("LOCAL_RANK")
    with pytest.raises(ConfigError, match="has no LOCAL_RANK; start them with torchrun, or unset RANK and WORLD_SIZE"):
        rank()


@pytest.mark.parametrize(("count", "shards"), [(1, 1), (1, 4), (2, 2), (2, 8), (8, 8)])
def test_processes_share_shards_that_they_divide(count, shards):
    require_divides(count, shards, "budget.shards")


@pytest.mark.parametrize(
    ("count", "shards", "problem"),
    [
        (2, 1, r"2 processes cannot share 1 shard \(budget.shards=1\); start 1 at most, or set budget.shards=2"),
        (8, 4, r"8 processes cannot share 4 shards \(budget.shards=4\); start 4 at most, or set budget.shards=8"),
        (3, 4, r"3 processes: the number must be a power of two; start 2 or 4 processes"),
    ],
)
def test_others_are_told_the_nearest_numbers_that_fit(count, shards, problem):
    with pytest.raises(ConfigError, match=problem):
        require_divides(count, shards, "budget.shards")


def test_what_one_process_does_is_not_done_by_several(environment):
    require_alone("metasearch crossval")
    put(environment, WHOLE)
    with pytest.raises(ConfigError, match="metasearch crossval runs in one process; start it without torchrun"):
        require_alone("metasearch crossval")
