"""The benchmark of the engine runs every case, compares like with like, and counts as it says. No time is asserted."""

import json
from collections import Counter
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from click.testing import CliRunner

KEYS = {
    *("case", "shape", "metric", "value", "target", "holds", "low", "high"),
    *("rounds", "threads", "revision", "machine"),
}


def test_the_smallest_run_keeps_rows_of_every_case(module, tmp_path):
    script, path = module("throughput"), tmp_path / "rows.jsonl"
    flags = ["--scale", "small", "--rounds", "1", "--threads", "1", "--shape", "A1", "-o", str(path)]
    result = CliRunner().invoke(script.main, flags, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(row.keys() >= KEYS for row in rows)
    assert {row["case"] for row in rows} == set(script.CASES)
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    named = Counter((row["case"], row["metric"]) for row in rows)
    assert set(named.values()) == {1}
    wanted = {(case, metric) for case, metric, shape in module("_rows").TARGETS if shape == "A1"}
    assert wanted <= {(row["case"], row["metric"]) for row in rows if row["target"]}
    compared = [row for row in rows if row["metric"].startswith("times ") and row["case"] != "distillation"]
    assert {row["metric"] for row in compared if "gradient_error" in row} >= {"times learn2learn", "times authors"}
    assert all(metric in result.output for _, metric in wanted)


def test_every_target_of_a_case_is_of_a_case_and_shape_that_there_is(module):
    script = module("throughput")
    assert {case for case, _, _ in module("_rows").TARGETS} <= set(script.CASES)
    assert {shape for _, _, shape in module("_rows").TARGETS} <= set(script.SHAPES)
    assert set(module("_shapes").SCALES["small"].shapes) == set(script.SHAPES)


def test_a_row_holds_the_median_against_its_target_from_the_right_side(module, monkeypatch):
    rows = module("_rows")
    monkeypatch.setattr(rows, "TARGETS", {("c", "times", "A"): (">=", 2), ("c", "memory", "A"): ("<=", 2)})
    assert rows.row("c", "A", "times", [9, 1, 2], rounds=3) == {
        **{"case": "c", "shape": "A", "metric": "times", "value": 2, "low": 1, "high": 9},
        **{"target": 2, "holds": True, "rounds": 3},
    }
    assert rows.row("c", "A", "times", [1.9])["holds"] is False
    assert rows.row("c", "A", "memory", [1.9])["holds"] is True
    assert rows.row("c", "A", "memory", [2.1])["holds"] is False
    assert rows.row("c", "B", "times", [9])["target"] is rows.row("c", "B", "times", [9])["holds"] is None


def test_the_operations_of_a_step_are_those_of_its_distinct_texts_without_padding(module, setting):
    limit, wanted = module("_limit"), setting("maml")
    encoder, (batch, _) = wanted.make_encoder(), wanted.episodes()
    config = encoder.model[0].auto_model.config
    h, i, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers

    def forward(examples):
        texts = {(t.question.text, "question") for t in examples.examples}
        texts |= {(c.text, "candidate") for t in examples.examples for c in (t.positive, t.negative)}
        tokens = [int(encoder.features([text], role)["attention_mask"].sum()) for text, role in texts]
        return layers * sum(2 * n * (4 * h * h + 2 * h * i) + 4 * n * n * h for n in tokens)

    steps = wanted.recipe.options["inner_steps"]
    assert limit.flops(encoder, wanted.recipe, batch) == pytest.approx(
        sum(3 * (steps * forward(e.sets[0]) + forward(e.sets[1])) for e in batch)
    )
    align = setting("maml-align")
    assert limit.flops(encoder, align.recipe, align.episodes()[0]) == pytest.approx(
        sum(3 * (steps * forward(x) + 2 * forward(y) + forward(z)) for x, y, z in (e.sets for e in align.episodes()[0]))
    )


def test_the_rate_of_products_leaves_the_threads_as_they_were(module, setting):
    before = torch.get_num_threads()
    assert module("_limit").rate(setting("maml").make_encoder(), tokens=8, threads=before + 1, repeats=1) > 0
    assert torch.get_num_threads() == before


def test_gradients_are_compared_as_a_whole_where_one_is_sparse_or_missing(module):
    error = module("_runners").relative_error
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


class Nothing:
    """A setting without episodes, and its encoder."""

    def __init__(self):
        self.asked = []

    def make_encoder(self):
        return self

    def episodes(self):
        return []

    def lengths(self, texts, role):
        return [0] * len(texts)

    encode = lengths


@pytest.fixture
def constants(module, monkeypatch):
    """Return a function that makes jobs of loops with constant gradients, by gradient, and what they were asked for."""
    runners = module("_runners")
    setting = Nothing()

    def made(*gradients):
        for g in gradients:
            monkeypatch.setitem(runners.WAYS, str(g), lambda *args, g=g: Constant(*args, gradient=g))
        return {str(g): runners.Job(str(g), setting, torch.get_num_threads()) for g in gradients}

    return made, setting.asked


def test_ways_take_turns_on_the_same_meta_batches_and_the_first_is_not_timed(module, constants, tmp_path):
    jobs, asked = constants
    found = module("_runners").race(jobs(1.0, 1.00005), rounds=2, apart=False, folder=tmp_path)
    assert asked == [(1.0, 0), (1.00005, 0), (1.0, 1), (1.00005, 1), (1.00005, 2), (1.0, 2)]
    assert {way: len(seconds) for way, seconds in found.seconds.items()} == {"1.0": 2, "1.00005": 2}
    assert found.errors == {"1.00005": pytest.approx(0.00005 / 1.00005, rel=0.01)}
    assert all(0 <= peaks["gradient"] <= peaks["step"] for peaks in found.memory.values())


def test_a_peer_with_another_gradient_ends_the_race(module, constants, tmp_path):
    jobs, asked = constants
    with pytest.raises(module("_runners").DifferentGradient, match=r"'1.0' and '1.001' differ by 1.0e-03"):
        module("_runners").race(jobs(1.0, 1.001), rounds=2, apart=False, folder=tmp_path)
    assert asked == [(1.0, 0), (1.001, 0)]


def test_a_way_runs_in_a_process_of_its_own(module, constants, tmp_path, monkeypatch):
    """It is forked here, which needs no imports; what goes wrong there is heard of here."""
    runners = module("_runners")
    monkeypatch.setattr(runners, "get_context", lambda method: get_context("fork"))
    jobs, asked = constants
    found = runners.race(jobs(1.0, 1.00005), rounds=2, apart=True, folder=tmp_path)
    assert asked == []
    assert found.errors["1.00005"] > 0
    assert [len(seconds) for seconds in found.seconds.values()] == [2, 2]
    with pytest.raises(ValueError, match="no fourth"):
        runners.race(jobs(1.0), rounds=3, apart=True, folder=tmp_path)


def test_a_peak_of_memory_is_seen_though_it_is_over(module):
    memory = module("_memory")
    start = memory.reset_peak()
    torch.ones(64 * memory.MIB // 4).sum()
    assert 63 <= (memory.peak() - start) / memory.MIB <= 80


def test_towers_are_padded_to_the_limits_and_give_the_same_vectors(module, setting):
    wanted = setting("maml")
    encoder, examples = wanted.make_encoder(), wanted.episodes()[0][0].sets[0]
    questions, positives, negatives = module("_loops").towers(encoder, examples)
    limits = encoder.limit("question"), encoder.limit("candidate")
    shapes = [tower["input_ids"].shape for tower in (questions, positives, negatives)]
    assert shapes == [(len(examples.examples), limit) for limit in (limits[0], limits[1], limits[1])]
    vectors = encoder.encode([t.positive.text for t in examples.examples], "candidate")
    np.testing.assert_allclose(encoder.embedder(positives).detach().numpy(), vectors, atol=1e-6)


def test_the_authors_score_counts_candidate_0_as_the_answer_to_every_question(module):
    first, second = torch.eye(2)
    assert module("_loops").as_the_authors([torch.eye(2), torch.eye(2), -torch.eye(2)]) == 1 / 2
    assert module("_loops").as_the_authors([torch.stack([first, first]), torch.eye(2), -torch.eye(2)]) == 2 / 2
    assert module("_loops").as_the_authors([torch.stack([second, second]), torch.eye(2), -torch.eye(2)]) == 0
