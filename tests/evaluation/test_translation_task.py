"""Tasks of which all is test: translation retrieval in both directions, its groups, and STS 2017."""

import json

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.evaluation import TranslationEvaluator

from helpers.commands import metasearch
from helpers.corpus import FakeEncoder, at_angle
from helpers.formats import declared, translation
from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import Translation, TranslationData
from metasearch.errors import NonFiniteError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.metrics import pairs

ACCURACY = Measure("accuracy")


# The metric.


def test_of_equal_candidates_the_first_is_taken():
    candidates = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    assert pairs.nearest_neighbours(np.array([[1.0, 0.0]] * 3), candidates).tolist() == [1, 1, 1]
    # An encoder that gives all texts one vector is right once.
    for size in (2, 7, 65, 129):
        same = np.tile(np.random.default_rng(size).standard_normal(33), (size, 1)).astype(np.float32)
        assert pairs.accuracy(same, same).mean() == pytest.approx(1 / size)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(4, 7)), min_size=1, max_size=8))
def test_a_perfect_encoder_has_1_however_texts_repeat(drawn):
    """It finds a translation of each text, of which a repeated one has several."""
    meaning = {}
    for source, target in drawn:  # texts that any chain of pairs joins mean the same
        old, new = meaning.setdefault(target, target), meaning.setdefault(source, source)
        meaning = {text: new if own == old else own for text, own in meaning.items()}
    # Of one meaning only one source or one target, else another translation of the meaning would be found.
    sides = [
        (len({s for s, _ in drawn if meaning[s] == m}), len({t for _, t in drawn if meaning[t] == m}))
        for m in set(meaning.values())
    ]
    assume(all(1 in side for side in sides))
    data = TranslationData(tuple(Translation(f"t{s}", f"t{t}", ("en", "de")) for s, t in drawn))
    perfect = FakeEncoder({f"t{text}": at_angle(0.1 * own) for text, own in meaning.items()})
    assert {score.value for score in evaluate(perfect, data, [ACCURACY]).scores} == {1.0}


@given(st.integers(1, 40), st.integers(2, 8), st.integers(0, 1000))
def test_it_is_the_accuracy_of_sentence_transformers_in_both_directions(size, dimension, seed):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((size, dimension))
    second = first + rng.standard_normal((size, dimension)) * 0.7
    texts = {f"a{i}": row for i, row in enumerate(first)} | {f"b{i}": row for i, row in enumerate(second)}
    theirs = TranslationEvaluator([f"a{i}" for i in range(size)], [f"b{i}" for i in range(size)], write_csv=False)
    theirs.embed_inputs = lambda model, sentences: [torch.tensor(texts[text]) for text in sentences]
    theirs.store_metrics_in_model_card_data = lambda *args: None
    found = theirs(None)
    assert pairs.accuracy(first, second).mean() == pytest.approx(found["src2trg_accuracy"])
    assert pairs.accuracy(second, first).mean() == pytest.approx(found["trg2src_accuracy"])


@pytest.mark.parametrize("side", [0, 1])
def test_a_vector_that_is_not_finite_is_an_error(side):
    sides = [np.eye(3), np.eye(3)]
    sides[side][1, 1] = np.nan
    with pytest.raises(NonFiniteError, match="not finite"):
        pairs.accuracy(*sides)


# The evaluation.

ANGLES = {
    # English texts stand at 0, 1, 2; German ones find all of them; of Greek ones the second finds g2.
    **{"e0": 0.0, "e1": 1.0, "e2": 2.0},
    **{"d0": 0.0, "d1": 1.0, "d2": 2.0},
    **{"g0": 0.1, "g1": 1.6, "g2": 1.9},
}
DATA = TranslationData(
    tuple(
        Translation(f"e{i}", f"{letter}{i}", ("eng", code))
        for letter, code in (("d", "deu"), ("g", "ell"))
        for i in range(3)
    ),
    {"both": ("deu", "ell"), "some": ("ell", "tha", "tur"), "none": ("tha",)},
)


def encoder():
    return FakeEncoder({text: at_angle(angle) for text, angle in ANGLES.items()})


def test_each_language_is_searched_in_both_directions_among_its_own():
    found = evaluate(encoder(), DATA, [ACCURACY])
    assert [(s.pool, s.language, s.candidates, s.value, s.count) for s in found.scores] == [
        ("both", "deu", "", 1.0, 3),
        ("xx-en", "deu", "eng", 1.0, 3),
        ("en-xx", "deu", "deu", 1.0, 3),
        ("both", "ell", "", pytest.approx((2 / 3 + 3 / 3) / 2), 3),
        ("xx-en", "ell", "eng", pytest.approx(2 / 3), 3),
        ("en-xx", "ell", "ell", 1.0, 3),
    ]
    assert found.questions.columns["accuracy", "xx-en", "ell", "eng"].tolist() == [1, 0, 1]
    assert found.questions.columns["accuracy", "both", "ell", ""].tolist() == [1, 0.5, 1]


def test_a_group_is_the_mean_of_its_languages_that_are_there_and_says_how_many_are():
    rows = [row for row in evaluate(encoder(), DATA, [ACCURACY]).rows() if "found" in row]
    assert [(r["language"], r["pool"], r["value"], r["found"], r["listed"], r["count"]) for r in rows] == [
        ("group both", "both", pytest.approx((1 + 5 / 6) / 2), 2, 2, 6),
        ("group both", "xx-en", pytest.approx((1 + 2 / 3) / 2), 2, 2, 6),
        ("group both", "en-xx", 1.0, 2, 2, 6),
        ("group some", "both", pytest.approx(5 / 6), 1, 3, 3),
        ("group some", "xx-en", pytest.approx(2 / 3), 1, 3, 3),
        ("group some", "en-xx", 1.0, 1, 3, 3),
    ]


# Tasks of which all is test.


@pytest.fixture
def small(write, tmp_path):
    """Return the flags of a small task whose files lie in a folder."""
    groups = {"both of them": ("deu", "ell"), "2": ("ell", "tha"), "none there": ("tha",)}
    write(declared(translation("deu ell tha", partial=True, groups=groups)))
    folder = tmp_path / "texts"
    folder.mkdir()
    for code, lines in (("deu", ["Haus", "Baum", "Katze"]), ("ell", ["σπίτι", "δέντρο"])):
        (folder / f"tatoeba.{code}-eng.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / f"tatoeba.{code}-eng.eng").write_text("\n".join(["house", "tree", "cat"][: len(lines)]) + "\n")
    return ["--include", str(tmp_path), "--data", str(folder)]


def test_evaluate_prints_languages_and_groups_and_writes_the_same_rows(small, tmp_path):
    out = tmp_path / "scores.jsonl"
    result = metasearch("evaluate", "--task", "small", *small, "-o", out)
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if "|" in line]
    assert [line[0] for line in shown] == [
        "accuracy of tiny (test)",
        *("-" * 23, "deu", "ell", "mean"),
        *("mean over the group", "-" * 19, "both of them", "2"),
    ]
    assert [line[1] for line in shown[-2:]] == ["2 of 2", "1 of 2"]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert json.loads(metasearch("evaluate", "--task", "small", *small, "--json").stdout)["results"] == rows
    of = {(row["language"], row["pool"]): 100 * row["value"] for row in rows}
    for line in shown[2:5]:
        expected = [of[line[0], pool] for pool in ("xx-en", "en-xx", "both")]
        assert [float(cell) for cell in line[1:]] == pytest.approx(expected, abs=0.005)
    assert "small: 2 of 3 languages are there; without files: tha" in result.stderr


def test_sts_2017_has_all_250_pairs_of_each_track_as_test(real_data):
    found = load_benchmark("sts17", data=str(real_data))
    counts = {pair: sum(one.pair == pair for one in found.split.test.pairs) for pair in found.task.pairs}
    assert counts == dict.fromkeys(("ar-ar", "es-es", "en-en", "ar-en", "tr-en", "es-en"), 250)
    assert (found.task.measures, found.task.monitor) == (["spearman", "pearson"], "spearman")
    assert found.split.train.pairs == found.split.dev.pairs == ()
