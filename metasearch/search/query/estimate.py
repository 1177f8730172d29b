"""Estimates how an index is searched (`SearchPlan`) from its passages alone, and decides when to estimate again.

The estimate takes stored vectors of some passages of each language, chosen by their keys, and some of their texts. So
it depends on the passages alone, and not on the order in which they came or on whether a process was stopped. Each
language weighs the same in it, however many passages there are.
"""

import hashlib
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metasearch.config.languages import UNKNOWN
from metasearch.config.projection import LEAST
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.records import Candidate, grouped
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.maps import estimate
from metasearch.encoders.neutral import require_none
from metasearch.encoders.protocols import TextEncoder
from metasearch.errors import DataError
from metasearch.search.documents.languages import translations
from metasearch.search.documents.read import is_page
from metasearch.search.index.base import FilePlaces
from metasearch.search.index.maps import centred, query_centre, translation_map
from metasearch.search.index.page_scores import sharpness_for
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.writer import IndexWriter

SAMPLE = 600
"""Passages of each language in the estimate, at most, as of `metasearch neutralise`."""
_SPANS, _SPANS_ALL = 200, 1000
"""Spans of passages that stand for queries, of each language and in all, at most."""
_WORDS, _CHARACTERS = (2, 7), (4, 14)
"""Words of a span; its characters in scripts without spaces."""
LEAST_PAGES = 20
"""Pages in several languages, below which no map of translations is estimated."""
FIRST = 32
"""Passages of a page that count: the first ones."""
_MOST = 1000
"""Pages with translations in the estimate, at most."""
_GROWN = 2
"""What has so many times as much in the sample as in the estimate is estimated again."""
_COPIED = 0.999
"""Cosine from which a passage is the same text as one of a translation."""

log = logging.getLogger(__name__)


def check(encoder: Encoder, wanted: bool | None, plan: SearchPlan, counts: Mapping[str, int]) -> None:
    """Raise an error before anything is encoded where a wanted projection is impossible.

    Args:
        encoder: `EncoderError` if it has a projection.
        wanted: only True is checked; None takes one where it is possible.
        plan: the stored one, whose projection stays where no other is possible.
        counts: how many passages each language has at most; `DataError` if they are too few.
    """
    if wanted and not plan.languages:
        require_none(encoder)
        if len(_enough(counts)) < 2:
            raise DataError(f"--neutral {_too_few(counts)}")


def renewed(store: IndexWriter, files: Sequence[FilePlaces], encoder: Encoder, wanted: bool | None) -> SearchPlan:
    """Return the plan of an index with some documents.

    The stored projection stays unless a language is new, or has twice as many passages in the sample as before or half
    as many; so does the map of translations until there are twice as many pages or half as many. Centre and sharpness
    go with them, and are also estimated again where there are twice as many passages in all.

    Raises:
        DataError: a projection is wanted, and there are too few passages.
    """
    before, sample = store.plan, store.sample(files, SAMPLE)
    if encoder.centred:  # an exported index, whose projection and centres are in the encoder
        before = replace(before, projection=None, texts=(), centre=None)
    if wanted is False:
        found = replace(before, projection=None, texts=(), centre=None, translations=None, translated=0)
    else:
        found = before if encoder.centred else _with_projection(store, before, sample, encoder.neutral, bool(wanted))
        again = found.projection is not before.projection or before.sharpness is None
        if encoder.maps_queries:
            log.info("%s maps queries by itself: no map of translations is estimated", encoder.name)
            found = replace(found, translations=None, translated=0)
        else:
            found = _with_translations(store, files, found, again)
    known = store.plan
    changed = found.projection is not known.projection or found.translations is not known.translations
    count = sum(map(len, sample.values()))
    if changed or before.sharpness is None or count >= _GROWN * before.sampled:
        found = replace(_with_sampled_queries(store, encoder, found, sample), sampled=count)
    return found


def _with_projection(
    store: IndexWriter, before: SearchPlan, sample: Mapping[str, NDArray[np.int64]], neutral: bool, wanted: bool
) -> SearchPlan:
    """Return a plan with the projection; one that only centres for one language, or after an encoder that has one."""
    counts = {tag: len(places) for tag, places in sample.items()}
    enough, had = _enough(counts), before.languages
    # One direction less than languages is removed, and something has to stay.
    several = 2 <= len(enough) < store.kind.dimension and not neutral
    enough = enough if several else sorted(counts)
    if not several and wanted and not had:
        raise DataError(f"--neutral {_too_few(counts)}")
    if len(counts) > 1 and not several and not had and not neutral:
        log.info("no language-neutral projection: it %s", _too_few(counts))
    if not several and ((had and wanted) or sum(counts[tag] for tag in enough) < LEAST_PAGES):
        return before
    same = before.projection is not None and several == bool(had)
    known = before.projection.languages if before.projection else ()
    reason = _reason(dict(zip(known, before.texts, strict=True)), counts, enough) if same else ""
    if same and not reason:
        return before
    others = ", ".join(f"{tag} {count}" for tag, count in counts.items() if tag not in enough)
    what = "language bias is removed: a projection was" if several else "vectors are centred: their mean was"
    log.info(
        "%s estimated%s from %s%s%s",
        what, f" again ({reason})" if same else "", ", ".join(f"{tag} {counts[tag]}" for tag in enough),
        f", without {others}" if others else "", "; all vectors are kept" if before.projection else "",
    )  # fmt: skip
    ends = np.cumsum([counts[tag] for tag in enough])[:-1]
    vectors = np.split(store.stored_at(np.concatenate([sample[tag] for tag in enough])), ends)
    by_language = dict(zip(enough, vectors, strict=True))
    projection = estimate(by_language) if several else centred(by_language)
    return replace(before, projection=projection, texts=tuple(counts[tag] for tag in projection.languages))


def _with_translations(store: IndexWriter, files: Sequence[FilePlaces], plan: SearchPlan, again: bool) -> SearchPlan:
    """Return a plan with the map of translations, if enough pages are in several languages; without one if not."""
    known = {each.file.path: each for each in files if len(each.keys) and is_page(each.file.path)}
    languages = {path: each.file.language for path, each in known.items()}
    names = {path: each.file.group for path, each in known.items()}
    # By a hash of their paths, so that the sample depends on the documents alone.
    groups = translations(languages, names)
    groups = sorted(groups, key=lambda group: hashlib.sha256(group[0].encode()).digest())[:_MOST]
    had = plan.translations is not None
    if len(groups) < LEAST_PAGES:
        if had:
            log.info(
                "translations are not used any more: %d pages have some, and %d are needed", len(groups), LEAST_PAGES
            )
        return replace(plan, translations=None, translated=0)
    if had and not again and plan.translated < _GROWN * len(groups) < _GROWN**2 * plan.translated:
        return plan
    pages = [known[path].keys[:FIRST] for group in groups for path in group]
    stored = store.stored_of(np.concatenate(pages))
    own = iter(np.split(stored, np.cumsum(list(map(len, pages)))[:-1]))
    used = _compared(plan, ([next(own) for _ in group] for group in groups))
    if len(used) < LEAST_PAGES:
        log.info("translations are not used: %d of %d pages have texts of their own", len(used), len(groups))
        return replace(plan, translations=None, translated=0)
    log.info(
        "what distinguishes a page from its translations counts less in queries; estimated%s from %d pages",
        " again" if had else "", len(used),
    )  # fmt: skip
    return replace(plan, translations=translation_map(used), translated=len(used))


def _compared(plan: SearchPlan, groups: Iterable[Sequence[NDArray[np.float32]]]) -> list[list[NDArray[np.float32]]]:
    """Return groups of translations as the plan has them, each page without texts of others."""
    return [[plan.documents(each) for each in own] for own in map(own_passages, groups) if len(own) > 1]


def own_passages(pages: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Return the passages of each translation, `(n, D)`, that no other one has, without pages that have none.

    A text that was not translated has the same vector in all of them. Of pages with the same texts the first counts.
    """
    different = list[NDArray[np.float32]]()
    for page in pages:
        if not any(_inside(page, other).all() and _inside(other, page).all() for other in different):
            different.append(page)
    found = []
    for i, page in enumerate(different):
        others = [other for j, other in enumerate(different) if j != i]
        found.append(page[~_inside(page, np.concatenate(others))] if others else page)
    return [page for page in found if len(page)]


def _inside(page: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray((page @ other.T).max(1) >= _COPIED)


def _with_sampled_queries(
    store: IndexWriter, encoder: Encoder, plan: SearchPlan, sample: Mapping[str, NDArray[np.int64]]
) -> SearchPlan:
    some = {tag: places[:_SPANS] for tag, places in sample.items()}
    vectors = {tag: store.stored_at(places) for tag, places in some.items()}
    found = _with_queries(encoder, plan, vectors, {tag: store.texts_at(places) for tag, places in some.items()})
    encoder.forget()
    return found


def _with_queries(
    encoder: TextEncoder,
    plan: SearchPlan,
    vectors: Mapping[str, NDArray[np.float32]],
    texts: Mapping[str, Sequence[str]],
) -> SearchPlan:
    """Return a plan with the centre of queries and the sharpness of page scores, by spans of passages as queries.

    Args:
        encoder: encodes the spans.
        plan: with projection and map.
        vectors: of some passages in each language, `(n, D)`, as the encoder gives them.
        texts: of these passages.
    """
    most = max(_SPANS_ALL // max(len(texts), 1), 1)
    spans = {tag: [_span(text) for text in own[:most]] for tag, own in texts.items()}
    found = encoder.encode([span for own in spans.values() for span in own], "question")
    if plan.projection:
        ends = np.cumsum([len(own) for own in spans.values()])[:-1]
        means = dict(zip(spans, np.split(found, ends), strict=True))
        inside = {tag: own for tag, own in means.items() if tag in plan.projection.languages}
        plan = replace(plan, centre=query_centre(plan.projection, inside or means))
    documents = plan.documents(np.concatenate([own[:most] for own in vectors.values()]))
    return replace(plan, sharpness=sharpness_for(plan.queries(found) @ documents.T))


# The estimate for passages that are in no index.


def estimate_plan(encoder: TextEncoder, passages: Sequence[Candidate]) -> SearchPlan:
    """Return the plan of an index of some passages by an encoder that has a projection or needs none."""
    ordered = sorted(passages, key=lambda each: hashlib.sha256(each.text.encode()).digest())
    texts = {
        tag: [each.text for each in own[:SAMPLE]] for tag, own in grouped(ordered, lambda each: each.language).items()
    }
    vectors = {tag: encoder.encode(own, "candidate") for tag, own in texts.items()}
    plan = SearchPlan(projection=centred(vectors))
    pages = [page for page in grouped(passages, lambda each: each.page).values() if is_page(page[0].page)]
    groups = [own for name, own in grouped(pages, lambda page: page[0].work).items() if name and len(own) > 1]
    encoded = ([encoder.encode([each.text for each in page[:FIRST]], "candidate") for page in own] for own in groups)
    used = _compared(plan, encoded)
    if len(used) >= LEAST_PAGES:
        plan = replace(plan, translations=translation_map(used), translated=len(used))
    some = {tag: own[:_SPANS] for tag, own in vectors.items()}
    return _with_queries(encoder, plan, some, {tag: own[:_SPANS] for tag, own in texts.items()})


def _span(text: str) -> str:
    """Return a few words from within a text, drawn by its hash, as if they were typed into a search box."""
    text = remove_invisible(text)  # as before it is encoded
    rng = random.Random(hashlib.sha256(text.encode()).digest())
    words = text.split()
    if 2 * len(words) < len(text) / _CHARACTERS[1]:  # a script without spaces
        size = rng.randint(*_CHARACTERS)
        start = rng.randrange(max(1, len(text) - size))
        return " ".join(text[start : start + size].split()) or text
    size = rng.randint(*_WORDS)
    start = rng.randrange(max(1, len(words) - size))
    return " ".join(words[start : start + size]) or text


def _enough(counts: Mapping[str, int]) -> list[str]:
    return [tag for tag, count in sorted(counts.items()) if count >= LEAST and tag != UNKNOWN]


def _too_few(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{tag} {count}" for tag, count in sorted(counts.items()))
    hint = f" ({UNKNOWN}: unknown; set it with --language or --detect)" if UNKNOWN in counts else ""
    return f"needs {LEAST} passages in each of two languages or more; there are {shown}{hint}"


def _reason(before: Mapping[str, int], counts: Mapping[str, int], enough: Sequence[str]) -> str:
    """Return why a projection of so many texts a language is out of date; empty if it is not."""
    found = [f"{tag} is new" for tag in enough if tag not in before]
    for tag, had in before.items():
        count = counts.get(tag, 0)
        if (tag in enough and count >= _GROWN * had) or _GROWN * count <= had:
            found.append(f"{tag} {had} → {count}")
    return ", ".join(found)
