"""Texts in Python: any ordered collection is as good as a list, and what is no list of texts is refused in one line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cross_encoders import write_cross_encoder
from helpers.indexes import Made
from metasearch.compress.student import make_student
from metasearch.compress.trimming import trim
from metasearch.data.formats.given import list_texts
from metasearch.data.labels import load_labels
from metasearch.encoders.builtin import tiny
from metasearch.encoders.cross_encoder import open_reranker
from metasearch.encoders.maps import Projection
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder
from metasearch.errors import DataError
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import Kind, passage_keys
from metasearch.search.index.local import LocalStore
from metasearch.search.index.writer import writing
from metasearch.search.query.searcher import Searcher

TEXTS = ["Where is the key?", "", "Wo?", "Where is the key?", "क्या 😀"]


COLLECTIONS = {
    "generator": lambda texts: (text for text in texts),
    "tuple": tuple,
    "values of a dict": lambda texts: dict(enumerate(texts)).values(),
    "array": np.array,
    "array of objects": lambda texts: np.array(texts, object),
    "column of pandas": lambda texts: pytest.importorskip("pandas").DataFrame({"text": ["", *texts]})["text"][1:],
    "column of polars": lambda texts: pytest.importorskip("polars").Series(texts),
    "column of pyarrow": lambda texts: pytest.importorskip("pyarrow").chunked_array([texts[:1], texts[1:]]),
    "column of datasets": lambda texts: pytest.importorskip("datasets").Dataset.from_dict({"text": texts})["text"],
}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """Return every public function that takes texts: name → a call, whose result can be compared."""
    encoder, folder = tiny.build(), tmp_path_factory.mktemp("texts")
    vectors = encoder.encode(["The key.", "Der Schlüssel."], "candidate")
    passages = [Passage("The key.", "a.txt", 1, "en"), Passage("Der Schlüssel.", "b.txt", 1, "de")]
    with writing(folder / "index", Kind(encoder.name, encoder.fingerprint, encoder.dimension())) as store:
        store.upsert(vectors, passages, keys := passage_keys(passages))
        store.finish(Made(vectors, passages, keys).files())
    searcher = Searcher(LocalStore.open(folder / "index"), encoder)
    projected = ProjectedEncoder(encoder, Projection(np.zeros(encoder.dimension()), vectors[:1], ("de", "en")))
    reranker = open_reranker(write_cross_encoder(folder / "reranker"), encoder.device)
    return {
        "encode": lambda texts: encoder.encode(texts, "question"),
        "encode_query": encoder.encode_query,
        "encode_document": encoder.encode_document,
        "tokens": lambda texts: [row.tolist() for row in encoder.tokens(texts, "text")],
        "features": lambda texts: encoder.features(texts, "text")["input_ids"],
        "lengths": lambda texts: encoder.lengths(texts, "text"),
        "is_truncated": lambda texts: encoder.is_truncated(texts, "text"),
        "CachedEncoder.encode": lambda texts: CachedEncoder(encoder).encode(texts, "text"),
        "ProjectedEncoder.encode": lambda texts: projected.encode(texts, "text"),
        "search": lambda texts: [[hit.score for hit in hits] for hits in searcher.search(texts, top_k=2)],
        "encode_queries": searcher.encode_queries,
        "scores": lambda texts: reranker.scores("key", texts),
        "trim": lambda texts: trim(encoder, texts).model.tokenizer.get_vocab(),
        "make_student": lambda texts: make_student(encoder, 8, texts=texts).encode(["Where?"], "text"),
    }


@pytest.mark.parametrize("what", COLLECTIONS)
def test_every_ordered_collection_is_read_as_a_list(what):
    assert list_texts(COLLECTIONS[what](TEXTS)) == TEXTS


def test_every_function_reads_a_collection_that_ends(functions):
    for name, call in functions.items():
        same = call(COLLECTIONS["generator"](TEXTS)) == call(TEXTS)
        assert same if isinstance(same, bool) else same.all(), name


@pytest.mark.parametrize("text", ["abc", ""])
def test_one_text_in_the_place_of_a_list_is_refused(functions, text):
    """To Python a text is a list of letters, each of which would get a vector of its own."""
    for call in functions.values():
        with pytest.raises(TypeError, match=f"expected a list of texts, got the text '{text}'"):
            call(text)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (None, "got None"),
        (float("nan"), "got nan"),
        (b"a", "got b'a'"),
        (["a\nb"], r"got \['a"),
        ("a \ud83d", "got half a surrogate pair, U\\+D83D"),
    ],
)
def test_an_item_that_is_no_text_is_named_by_its_number(functions, item, says):
    for call in functions.values():
        with pytest.raises(DataError, match=rf"^(texts|queries)\[1\]: expected a text, {says}.*$"):
            call(["a", item])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ({"a", "b"}, "set"),
        (frozenset("a"), "frozenset"),
        ({"a": "b"}, "dict"),
        (b"ab", "bytes"),
        (None, "NoneType"),
        (3, "int"),
    ],
)
def test_what_has_no_order_or_no_texts_is_refused(texts, kind):
    with pytest.raises(TypeError, match=f"^texts: expected a list of texts, got {kind}$"):
        list_texts(texts)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_is_refused_whose_items_are_names_of_columns(library):
    table = pytest.importorskip(library).DataFrame({"text": ["a"]})
    with pytest.raises(TypeError, match=r"^texts: expected a list of texts, got DataFrame$"):
        list_texts(table)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
@settings(max_examples=30, deadline=None)
def test_any_texts_come_back(texts):
    for collect in (list, tuple, iter, lambda each: np.array(each, object)):
        assert list_texts(collect(texts)) == texts


# Rows.

ROWS = [
    {"query": "When?", "document": "Now.", "language": "en"},
    {"query": "Wann?", "document": "Da.", "language": "de"},
]


@pytest.mark.parametrize("form", [None, "pandas", "arrow", "polars", "numpy", "torch"])
def test_rows_of_datasets_are_read_in_every_format(form):
    rows = pytest.importorskip("datasets").Dataset.from_list(ROWS)
    assert load_labels(rows.with_format(form)) == load_labels(ROWS)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rows_of_a_table_are_read(library):
    module = pytest.importorskip(library)
    table = module.Table.from_pylist(ROWS) if library == "pyarrow" else module.DataFrame(ROWS)
    assert load_labels(table) == load_labels(ROWS)


@pytest.mark.parametrize("row", [["a", "b"], "a\nb", None, np.zeros((3, 3))])
def test_a_row_that_is_no_mapping_is_one_line(row):
    with pytest.raises(DataError, match=r"^row 2: expected a dict, got .+$"):
        load_labels([ROWS[0], row])
