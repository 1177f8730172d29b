"""The benchmark of the outer step compares like with like and counts as it says. No time is asserted."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks.speed import race


@pytest.fixture(autouse=True)
def _without_published_data(monkeypatch):
    monkeypatch.delenv("METASEARCH_DATA", raising=False)


@pytest.fixture(autouse=True)
def _no_garbage_collection(monkeypatch):
    # With all of torch loaded it takes a second, which matters to what is timed only.
    monkeypatch.setattr(race.gc, "collect", lambda: 0)


def test_gradients_are_compared_as_a_whole_where_one_is_sparse_or_missing():
    error = race.relative_error
    table = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    sparse = torch.sparse_coo_tensor(torch.tensor([[1]]), table[1:], (2, 2)).coalesce()
    assert error({"table": sparse}, {"table": table, "pooler": torch.zeros(2)}) == 0
    assert error({"table": sparse}, {"table": table, "bias": torch.tensor([4.0])}) == pytest.approx(
        4 / (3**2 + 4**2) ** 0.5
    )
    assert error({"table": table, "more": torch.tensor([6.0])}, {"table": table}) == pytest.approx(6 / 3)
    assert not error({"table": table * float("nan")}, {"table": table}) <= 1


class Constant:
    """A loop whose gradient is a constant, and which counts what it is asked for."""

    def __init__(self, setting, encoder, batches, gradient=1.0):
        self.parameters = {"weight": torch.nn.Parameter(torch.zeros(2))}
        self.optimizer = torch.optim.SGD(self.parameters.values(), lr=0.1)
        self.gradient, self.asked = gradient, setting.asked

    def step(self, number):
        self.asked.append((self.gradient, number))
        if number == 3:
            raise ValueError("there is no fourth meta-batch")
        self.parameters["weight"].grad = torch.full((2,), self.gradient)
        self.optimizer.step()


@pytest.fixture
def constants(monkeypatch):
    """Return a function that makes jobs of loops with constant gradients, by gradient, and what they were asked for."""
    # A setting without episodes, and its encoder.
    setting = SimpleNamespace(device=torch.device("cpu"), asked=[], episodes=list, make_encoder=lambda: setting)
    setting.lengths = setting.encode = lambda texts, role: [0] * len(texts)

    def made(*gradients):
        for g in gradients:
            monkeypatch.setitem(race.WAYS, str(g), lambda *args, g=g: Constant(*args, gradient=g))
        return {str(g): race.Job(str(g), setting, torch.get_num_threads()) for g in gradients}

    return made, setting.asked


def test_ways_take_turns_on_the_same_meta_batches_and_the_first_is_not_timed(constants, tmp_path):
    jobs, asked = constants
    found = race.race(jobs(1.0, 1.00005), rounds=2, apart=False, folder=tmp_path)
    assert asked == [(1.0, 0), (1.00005, 0), (1.0, 1), (1.00005, 1), (1.00005, 2), (1.0, 2)]
    assert {way: len(seconds) for way, seconds in found.seconds.items()} == {"1.0": 2, "1.00005": 2}
    assert found.errors == {"1.00005": pytest.approx(0.00005 / 1.00005, rel=0.01)}
    assert all(0 <= peaks["gradient"] <= peaks["step"] for peaks in found.memory.values())


def test_a_peer_with_another_gradient_ends_the_race(constants, tmp_path):
    jobs, asked = constants
    with pytest.raises(race.DifferentGradient, match=r"'1.0' and '1.001' differ by 1.0e-03"):
        race.race(jobs(1.0, 1.001), rounds=2, apart=False, folder=tmp_path)
    assert asked == [(1.0, 0), (1.001, 0)]
