"""A search finds what float64 products find, in the same order, by vectors as whole numbers."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.indexes import DIMENSION, expected, found_by, made, queries, write_index
from metasearch.errors import ConfigError, NonFiniteError
from metasearch.search.index import exact_search
from metasearch.search.index.exact_search import split_queries, to_int8
from metasearch.search.index.local import LocalStore


@pytest.fixture(scope="module")
def content():
    return made(300)


@pytest.fixture(scope="module")
def store(content, tmp_path_factory):
    return LocalStore.open(write_index(tmp_path_factory.mktemp("index") / "own", content, portions=5), threads=2)


def rounding(asked):
    """Return how far a score may be off: half a step of a query of 15 bits in each dimension of a unit vector."""
    return np.abs(asked).max() / 16256 / 2 * DIMENSION**0.5 * 1.01


@given(
    seed=st.integers(0, 2**32 - 1),
    top=st.integers(1, 320),
    languages=st.sets(st.sampled_from(["de", "el", "tr"])),
    cells=st.sampled_from([1, 64, 2**18]),
    threads=st.integers(1, 3),
)
def test_a_search_is_exact(content, store, seed, top, languages, cells, threads):
    asked = queries(3, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "_CELLS", cells)
        patch.setattr(exact_search, "_LEAST_ROWS", 1 if cells == 1 and top < 20 else 17)
        patch.setattr(store, "threads", threads)
        found = found_by(store, asked, top, languages)
    wanted = expected(content, asked, top, languages)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=rounding(asked))
    # Scores that are told apart by more than the rounding of a query to 15 bits are in the same order.
    exact = {text: score for ranking in expected(content, asked[:1], 300) for text, score in ranking}
    ours = [exact[text] for text, _ in found[0]]
    assert (np.diff(ours) <= 2 * rounding(asked[:1])).all()


def test_neither_blocks_nor_threads_nor_other_queries_change_a_bit(store, monkeypatch):
    asked = queries(5)
    ((rows, scores),) = store.search(asked, 25)
    monkeypatch.setattr(exact_search, "_CELLS", 1)
    monkeypatch.setattr(exact_search, "_LEAST_ROWS", 13)
    for threads in (1, 3):
        monkeypatch.setattr(store, "threads", threads)
        again = [store.search(asked[i : i + 1], 25)[0] for i in range(5)]
        assert (np.concatenate([r for r, _ in again]) == rows).all()
        assert (np.concatenate([s for _, s in again]) == scores).all()


@pytest.mark.parametrize("number", [1, 5])
def test_several_groups_of_languages_are_found_in_one_pass_as_each_is_alone(content, tmp_path, number):
    groups, asked = [["el"], ["tr", "de"]], queries(number)
    store = LocalStore.open(write_index(tmp_path / "index", content), threads=2)
    together = store.search(asked, 25, groups)
    for languages, (rows, scores) in zip(groups, together, strict=True):
        ((wanted, exact),) = store.search(asked, 25, [languages])
        assert (rows == wanted).all()
        assert (scores == exact).all()
    assert [rows.shape for rows, _ in store.search(asked[:0], 25, groups)] == [(0, 25), (0, 25)]
    for overlapping in ([[], ["de"]], [["de", "el"], ["de"]]):
        with pytest.raises(ValueError, match="a language is in two groups"):
            store.search(asked, 25, overlapping)


def test_of_equal_scores_the_first_place_is_first(tmp_path):
    content = made(90)
    content.vectors[:] = content.vectors[0]
    store = LocalStore.open(write_index(tmp_path / "index", content, portions=13), threads=3)
    ((rows, scores),) = store.search(content.vectors[:1], 40)
    assert rows[0].tolist() == list(range(40))
    assert set(scores[0].tolist()) == {scores[0, 0]}


@pytest.mark.parametrize(
    ("languages", "top", "message"),
    [
        (["dee"], 5, "no passage is in language 'dee'. Did you mean 'de'? Known: de, el, tr."),
        ([], 0, "top_k 0: expected 1 or more"),
    ],
)
def test_a_search_that_cannot_be_is_refused(store, languages, top, message):
    with pytest.raises(ConfigError, match=f"^{message.replace('?', '[?]')}$"):
        store.search(queries(1), top, [languages])


def test_a_query_that_is_not_finite_is_refused(store):
    with pytest.raises(NonFiniteError, match="query"):
        store.search(np.full((1, DIMENSION), np.nan, np.float32))


@pytest.mark.slow
def test_every_kind_of_processor_gives_the_same_scores(store, tmp_path):
    """The library of the products has a way for each set of instructions; here all of them are left out by turns."""
    asked = queries(3)
    np.save(tmp_path / "asked.npy", asked)
    code = (
        "import sys, numkong, numpy as np\nfrom pathlib import Path\nfrom metasearch.search.index.local import "
        "LocalStore\nstore, asked = LocalStore.open(Path(sys.argv[1])), np.load(sys.argv[2])\nthere = [name for name, "
        "on in numkong.get_capabilities().items() if on and name != 'serial']\nfound = store.search(asked, 40)\nfor "
        "name in reversed(there):\n    numkong.disable_capability(name)\n    found += store.search(asked, "
        "40)\nnp.savez(sys.argv[3], rows=[r for r, _ in found], scores=[s for _, s in found])\n"
    )
    words = [str(store.folder), str(tmp_path / "asked.npy"), str(tmp_path / "found.npz")]
    subprocess.run([sys.executable, "-c", code, *words], check=True)
    found = np.load(tmp_path / "found.npz")
    ((rows, scores),) = store.search(asked, 40)
    assert (found["rows"] == rows).all()
    assert (found["scores"] == scores).all()


def test_the_greatest_component_has_the_code_127_and_the_others_their_share_of_it():
    codes, _ = to_int8(np.array([[0.5, -0.25, 0.1, 0.0]], np.float32))
    assert codes.tolist() == [[127, round(-0.25 / 0.5 * 127), round(0.1 / 0.5 * 127), 0]]


def test_a_step_keeps_the_length_of_a_vector():
    vectors = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    codes, steps = to_int8(vectors)
    rounded = codes.astype(np.float64) * steps[:, None]
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), np.linalg.norm(vectors, axis=1), rtol=1e-6)
    plain = np.abs(vectors).max(1, keepdims=True) / 127
    assert (np.abs(codes * plain - vectors) <= 0.501 * plain).all()
    np.testing.assert_allclose(steps[:, None], plain, rtol=0.01)


@pytest.mark.parametrize("dimension", [1, 24, 1024, 1100, 4096])
def test_no_product_of_a_query_with_codes_leaves_32_bits(dimension):
    halves, _ = split_queries(np.ones((1, dimension), np.float32))
    numbers = 128 * halves[0].astype(np.int64) + halves[1]
    assert 2**29 * min(1, dimension / 1024) <= abs(numbers.sum() * 127) < 2**31
