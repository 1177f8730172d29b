"""The study of adapters on frozen vectors: choice of rates, tasks of few labels, and paired differences."""

from functools import partial

import numpy as np
import pytest
import torch

from benchmarks.paper import adaptation
from benchmarks.paper.adapter_cells import INNER, MOST, OUTER, Cell, best_rates, search
from benchmarks.paper.adapter_shots import TEST, Part, chosen_rates, in_languages, tasks
from benchmarks.paper.adapter_tables import gain
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.encoders.maps import mapped

EYE = np.eye(16, dtype=np.float32)


class Basis:
    """Gives text i the unit vector i."""

    device = torch.device("cpu")

    def encode(self, texts, role):
        return EYE[[int(text) for text in texts]]


def part(languages=("de", "en"), pages=4):
    questions, candidates = [], []
    for page in range(pages):
        for language in languages:
            uid = f"page {page}"
            questions.append(Question(uid, language, str(page), uid))
            candidates.append(Candidate(f"{uid} {language}", language, str(page), uid, (uid,)))
    return Part("site", RetrievalData(tuple(questions), tuple(candidates)), Basis())


def test_a_best_rate_at_the_edge_extends_the_grid():
    tried = []

    def score(best, outer, inner):
        tried.append((outer, inner))
        return -abs(np.log(outer / best)) - (0 if inner is None else abs(np.log(inner / INNER[1])))

    search(partial(score, OUTER[1]), inner=True)
    assert tried == [*((outer, INNER[1]) for outer in OUTER), *((OUTER[1], inner) for inner in INNER)]
    tried.clear()
    search(partial(score, OUTER[0] / 10), inner=False)
    # 3e-4 / (1e-3 / 3e-4) = 9e-5, then 2.7e-5, of which the first has no better one beyond it.
    assert tried == [*((outer, None) for outer in OUTER), (9e-5, None), (2.7e-5, None), (8.1e-6, None)]
    assert len(tried) == MOST


def test_other_forms_of_maml_align_have_its_rates_and_each_fold_its_own():
    rows = [
        {"task": "stsb", "variant": "align", "fold": fold, "outer": outer, "inner": 0.2, "dev": dev, "test": {}}
        for fold, outer, dev in ((0, 1e-3, 0.5), (0, 3e-3, 0.6), (1, 1e-3, 0.7))
    ]
    assert best_rates(rows, "stsb", "align kd=0", 0) == (3e-3, 0.2)
    assert best_rates(rows, "stsb", "align", 1) == (1e-3, 0.2)


def test_rates_of_an_adaptation_are_those_of_the_nearest_shots_on_dev():
    dev = {f"{rate:g}": {"4": -rate, "16": rate} for rate in TEST}
    assert chosen_rates({"dev": dev}) == {1: TEST[0], 4: TEST[0], 8: TEST[-1], 16: TEST[-1], 32: TEST[-1]}


def test_a_task_scores_questions_in_its_language_that_are_never_labelled():
    one, other = tasks(part(pages=12), 2, ["de"], (1, 2))
    assert {question.language for question in one.order} == {"de"}
    assert [question.id for question in one.order] != [question.id for question in other.order]
    # Both right documents are first, without and with balanced scores.
    assert one.score(EYE).tolist() == [1.0, 1.0]
    # Pages of labelled questions have no vector: of 24 documents none is lost.
    labelled = [int(question.text) for question in one.order[:2]]
    without = EYE.copy()
    without[labelled, labelled] = 0
    assert one.score(without).tolist() == [1.0, 1.0]


def test_a_closed_form_behind_a_start_is_computed_of_the_queries_that_it_moves():
    own = part()
    asked, start = own.data.questions[:4], np.diag(np.arange(1, 17)).astype(np.float32) + np.float32(0.1)
    plain = own.closed_form(asked)
    np.testing.assert_array_equal(own.closed_form(asked, EYE), plain)

    class Moved(Basis):
        def encode(self, texts, role):
            vectors = super().encode(texts, role)
            return mapped(vectors, start) if role == "question" else vectors

    behind = Part("site", own.data, Moved()).closed_form(asked)
    np.testing.assert_allclose(own.closed_form(asked, start), behind @ start, atol=1e-4)
    # Without labels it has translations alone, which are equal here.
    np.testing.assert_array_equal(own.closed_form([]), EYE)
    # Two pages of four, in two languages, are translations that may be known.
    assert [len(own.translations(without)) for without in ((), {"page 0", "page 3"})] == [8, 4]


def test_only_questions_with_answers_in_all_languages_are_trained_on():
    own = part(("de", "en", "ja")).data
    fewer = RetrievalData(own.questions, tuple(c for c in own.candidates if c.id != "page 1 en"))
    kept = in_languages(fewer, ("de", "en"))
    assert {question.id for question in kept.questions} == {"page 0", "page 2", "page 3"}
    assert {candidate.language for candidate in kept.candidates} == {"de", "en"}


def test_gains_pair_tasks_and_vary_over_folds():
    zero = {("a", "de"): 10.0, ("a", "en"): 20.0, ("b", "de"): 30.0, ("b", "en"): 30.0}
    one = {("a", "de"): 11.0, ("a", "en"): 21.0, ("b", "de"): 33.0, ("c", "de"): 99.0}
    # (1 + 1 + 3) / 3
    assert gain(one, zero).startswith("+1.67 [")


@pytest.mark.slow
def test_a_cell_trains_an_adapter_on_known_vectors_and_scores_dev_or_test(tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation, "ENCODER", "tiny")
    bench = adaptation.Bench("demo", None, tmp_path)
    grid = bench.train(Cell("demo", "maml", 0, 1e-3, 0.2))
    assert grid["test"] == {}
    assert grid["dev"] > 0
    tested = bench.train(Cell("demo", "maml", 0, 1e-3, 0.2, test=True))
    assert tested["dev"] == grid["dev"]
    assert tested["untrained"]["mean"] > 0
