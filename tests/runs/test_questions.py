"""What is kept of each question: the same when it is read back, whole or not there, and never trusted blindly."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.files import largest_file
from metasearch.errors import DataError, RunFolderError
from metasearch.runs.per_query_results import FORMAT, QueryResults, Ranking, Text, load, query_results_path

FACTS = {"task": "demo", "learner": "maml", "fold_seed": None, "versions": {"numpy": "2.0"}}
CELL = ("multilingual", "el", "all")

any_text = st.text(st.characters(exclude_categories=()), max_size=8)  # half surrogate pairs, too
names = st.text(max_size=6)


def small(texts=("Πού;", "أين؟")):
    """Two questions; the first has two relevant candidates of three, the second one."""
    ranking = Ranking(
        questions=tuple(Text(f"q{i}", "el", text) for i, text in enumerate(texts)),
        candidates=tuple(Text(f"c{i}", lang, f"answer {i}") for i, lang in enumerate(("ar", "el", "el"))),
        languages=("ar", "el"),
        offsets=np.array([0, 2, 3]),
        relevant=np.array([0, 2, 1]),
        ranks=np.array([1, 3, 300]),
        top=np.array([[0, 1, 2], [0, 2, 1]]),
        scores=np.array([[0.9, 0.5, 0.1], [0.3, 0.2, 0.1]], dtype=np.float32),
    )
    return QueryResults({CELL: ("q0", "q1")}, {("map", *CELL): np.array([1 / 2 * (1 / 1 + 2 / 3), 1 / 300])}, ranking)


def equal(one, other):
    same = dict(one.units) == dict(other.units) and list(one.columns) == list(other.columns)
    same = same and all(one.columns[key].tobytes() == other.columns[key].tobytes() for key in one.columns)
    same = same and one.articles == other.articles
    if one.ranking is None or other.ranking is None:
        return same and one.ranking is other.ranking
    for name, value in vars(one.ranking).items():
        back = getattr(other.ranking, name)
        if name in ARRAYS:  # of bytes, since what is not a number is equal to nothing
            same = same and (value.shape, value.dtype, value.tobytes()) == (back.shape, back.dtype, back.tobytes())
        else:
            same = same and tuple(value) == back
    return same


ARRAYS = ("offsets", "relevant", "ranks", "top", "scores")


@st.composite
def anything(draw):
    """Draw cells of any names and sizes and, or not, a ranking of any texts."""
    cells = draw(st.lists(st.tuples(names, names, names), max_size=3, unique=True))
    units = {cell: tuple(draw(st.lists(any_text, max_size=4))) for cell in cells}
    floats = st.floats(allow_nan=True, allow_infinity=True, width=64)
    columns = {
        (name, *cell): draw(arrays(np.float64, len(ids), elements=floats))
        for cell, ids in units.items()
        for name in draw(st.lists(names, max_size=2, unique=True))
    }
    articles = st.dictionaries(any_text, any_text, max_size=3)
    return QueryResults(units, columns, draw(st.none() | rankings()), draw(articles))


@st.composite
def rankings(draw):
    texts = st.builds(Text, any_text, any_text, any_text)
    candidates = draw(st.lists(texts, min_size=1, max_size=5))
    questions = draw(st.lists(texts, max_size=4))
    languages = draw(st.lists(names, max_size=3, unique=True))
    counts = draw(st.lists(st.integers(0, 3), min_size=len(questions), max_size=len(questions)))
    deep, found = draw(st.integers(0, 3)), sum(counts)

    def numbers(shape, top):
        return draw(arrays(np.int64, shape, elements=st.integers(0, top)))

    return Ranking(
        tuple(questions),
        tuple(candidates),
        tuple(languages),
        np.cumsum([0, *counts]),
        numbers(found, len(candidates) - 1),
        numbers(found, 2**40),
        numbers((len(questions), deep), len(candidates) - 1),
        draw(arrays(np.float32, (len(questions), deep), elements=st.floats(width=32))),
    )


@given(anything())
def test_whatever_is_kept_is_read_back_to_the_bit(tmp_path, kept):
    kept.save(tmp_path / "kept.npz", FACTS)
    back, facts = load(tmp_path / "kept.npz")
    assert equal(kept, back)
    assert facts == FACTS


@pytest.mark.parametrize("label", ["../../elsewhere", "/some/model", "org/model", "à la carte", ".."])
def test_a_label_that_is_a_path_leads_out_of_no_folder(tmp_path, label):
    path = query_results_path(tmp_path, "demo", label, "test")
    assert path.resolve().parent == tmp_path.resolve() / "queries"
    small().save(path, FACTS)
    assert equal(load(path)[0], small())


@pytest.mark.slow
@given(at=st.integers(0), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path, at, bit):
    path = tmp_path / "kept.npz"
    small().save(path, FACTS)
    damaged = bytearray(path.read_bytes())
    damaged[at % len(damaged)] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        back, facts = load(path)
    except DataError:
        return
    assert equal(back, small())
    assert facts == FACTS


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def said(**about):
    whole = {"format": FORMAT, "facts": {}, "units": [], "columns": []} | about
    return np.frombuffer(json.dumps(whole).encode(), dtype=np.uint8)


FOREIGN = {
    "empty": b"",
    "a text": b"ein Text\n",
    "arrays of another program": npz(weights=np.zeros(3)),
    "about is no JSON": npz(about=np.frombuffer(b"{", dtype=np.uint8)),
    "a list without end": npz(about=np.frombuffer(b"[" * 100000, dtype=np.uint8)),
    "no units": npz(about=np.frombuffer(json.dumps({"format": FORMAT, "facts": {}}).encode(), dtype=np.uint8)),
    "a column that is not there": npz(about=said(units=[["a", "b", "c", ["q"]]], columns=[["map", "a", "b", "c"]])),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_file_is_refused(tmp_path, what):
    (tmp_path / "kept.npz").write_bytes(FOREIGN[what])
    with pytest.raises(DataError, match=r"kept.npz: damaged, or not a file of per-query results \(.+\)"):
        load(tmp_path / "kept.npz")


class Bomb:
    """Runs a command where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_is_refused_and_not_run(tmp_path):
    bomb = np.array([Bomb(tmp_path / "ran")], dtype=object)
    (tmp_path / "kept.npz").write_bytes(npz(about=bomb))
    with pytest.raises(DataError, match="not a file of per-query results"):
        load(tmp_path / "kept.npz")
    (tmp_path / "kept.npz").write_bytes(npz(about=said(units=[["", "", "", [""]]], columns=[[""] * 4]), column0=bomb))
    with pytest.raises(DataError, match="not a file of per-query results"):
        load(tmp_path / "kept.npz")
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "queries" / "kept.npz"
    small().save(path, FACTS)
    before = path.read_bytes()
    noise = "".join(map(chr, np.random.default_rng(0).integers(0x400, 0x2000, 9000)))
    with largest_file(4096), pytest.raises(RunFolderError, match=r"kept.npz cannot be written: File too large"):
        small((noise, "")).save(path, FACTS)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
