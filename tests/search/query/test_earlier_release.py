"""An index of the release before plans of searches ranks as before, says so, and gets a plan when it is updated."""

import gzip
import json

import numpy as np
import pytest

from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import RANKED_BY_DEFAULT, SearchPlan
from metasearch.search.indexes import index_documents, open_searcher, use_adapter
from metasearch.search.tune.adapt.job import adapt
from tests.fixtures.earlier_index.make import HERE, HOW, PAGES, QUERIES, write_documents
from tests.helpers.commands import metasearch

FOUND = json.loads((HERE / "hits.json").read_text(encoding="utf-8"))
LINE = (
    "ranked as in the release that made it; run metasearch index with its documents again to rank pages: texts that "
    "did not change keep their vectors"
)


@pytest.fixture
def earlier(tmp_path):
    write_documents(tmp_path / "pages")
    (tmp_path / "index").mkdir()
    content = gzip.decompress((HERE / "index.sqlite.gz").read_bytes())
    (tmp_path / "index" / "index.sqlite").write_bytes(content)
    return tmp_path / "index"


def shown(hits):
    return [[hit.passage.file, hit.passage.line, hit.places] for hit in hits]


@pytest.mark.parametrize("how", HOW)
def test_it_ranks_as_the_release_that_made_it(how, earlier):
    for hits, found in zip(open_searcher(earlier, "cpu").search(QUERIES, **HOW[how]), FOUND[how], strict=True):
        assert shown(hits) == [[file, line, places] for file, line, _, places in found]
        assert [hit.score for hit in hits] == pytest.approx([score for *_, score, _ in found], abs=2e-4)
        assert not any(hit.translations for hit in hits)


def test_its_plan_has_no_centre_of_queries_and_no_page_scores(earlier, caplog):
    caplog.set_level("INFO")
    plan = open_searcher(earlier, "cpu").store.plan
    assert (plan.centre, plan.sharpness, plan.learned, plan.sampled) == (None, None, None, 0)
    assert (plan.languages, plan.translated) == (("de", "en"), PAGES)
    assert np.array_equal(plan.query_centre, plan.projection.centre)
    assert plan.ranking == RANKED_BY_DEFAULT.model_copy(update={"balance": True, "by": "page"})
    assert SearchPlan.read(plan.record).record.keys() == plan.record.keys()
    assert [record.message for record in caplog.records if LINE in record.message] == [f"{earlier}: {LINE}"]


def test_queries_are_not_learned_before_it_is_updated(earlier):
    (earlier.parent / "queries.txt").write_text("\n".join(QUERIES), encoding="utf-8")
    said = metasearch("adapt", earlier, earlier.parent / "queries.txt", code=3)
    assert "no centre of queries" in said.stderr
    assert "run metasearch index with its documents again" in said.stderr


def test_an_update_gives_it_the_plan_and_encodes_no_passage(earlier, caplog):
    before = LocalStore.open(earlier)
    done = index_documents([earlier.parent / "pages"], earlier, device="cpu")
    assert (done.encoded, done.added, done.changed, done.dropped) == (0, 0, 0, 0)
    caplog.set_level("INFO")
    searcher = open_searcher(earlier, "cpu")
    assert LINE not in caplog.text
    plan = searcher.store.plan
    assert np.array_equal(searcher.store.stored.codes, before.stored.codes)
    # The projection stays. The map of translations is estimated by the new rule, and a centre of queries beside it.
    assert np.array_equal(plan.projection.centre, before.plan.projection.centre)
    assert not np.array_equal(plan.translations, before.plan.translations)
    assert plan.sharpness > 0
    assert not np.allclose(plan.centre, plan.projection.centre)
    assert plan.ranking.by == "group"
    (hits,) = searcher.search(QUERIES[:1], top_k=5)
    assert all(len(hit.translations) == 1 for hit in hits)
    assert len({hit.passage.file[:7] for hit in hits}) == 5


def test_its_adapters_are_learned_and_used_as_before(earlier):
    labels = [{"query": f"lamp {page}", "page": f"page-{page:02}.en.txt", "language": "en"} for page in range(12)]
    assert adapt(earlier, labels, name="clicks", device="cpu").facts.labels == 12
    use_adapter(earlier, "clicks")
    plan = LocalStore.open(earlier).plan
    assert (plan.adapter.name, plan.sharpness) == ("clicks", None)
