"""Tasks of mteb by name, `mteb:STS17`, or one subset of a task, `mteb:XQuADRetrieval/de`; for evaluation.

The types Retrieval (corpus, queries and judgements), STS (scored pairs) and BitextMining (sentences and translations)
are read, from the split `test` if there is one. All subsets of a retrieval task share one pool, unlike in mteb.
"""

import difflib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from metasearch.config.extras import import_extra
from metasearch.config.languages import is_known, parse_tag, primary_language
from metasearch.config.measure import Measure
from metasearch.config.run import DEFAULT_ENCODER
from metasearch.config.task import Folds, Source, Task
from metasearch.data.formats.text_files import strip_text, text_or_nothing
from metasearch.data.judged import JudgedText, Judgement, judged_data
from metasearch.data.languages import detector
from metasearch.data.records import Data, RetrievalData, ScoredPair, SimilarityData, Translation, TranslationData
from metasearch.errors import ConfigError, DataError, HubError, first_line, nearest

PREFIX = "mteb:"
_ENGLISH = "en"
_SAMPLE = 200
"""Texts in the detection of the language of a subset's queries or documents."""
log = logging.getLogger(__name__)


def is_mteb_name(source: object) -> bool:
    """Return whether a source is a name such as `mteb:STS17`."""
    return isinstance(source, str) and source.startswith(PREFIX)


def read(name: str) -> tuple[Task, Data]:
    """Return a task of mteb, all in the test split, and its data."""
    task = _open(name)
    reader, measures = _READERS[task.metadata.type]
    tags = _tags(task)
    try:
        task.load_data()
    # mteb and datasets raise errors of many types, network errors too.
    except Exception as error:
        raise HubError(f"{name}: mteb cannot load the data: {first_line(error)}") from error
    split = "test" if "test" in task.eval_splits else task.eval_splits[0]
    log.info("%s: split %s of the subsets %s", name, split, ", ".join(tags))
    data = reader(name, task, split, tags)
    return _declared(name, task, data, measures), data


def _open(name: str) -> Any:
    """Return the task of mteb with the named subset, or with all of them."""
    mteb = import_extra("mteb", "mteb", name)
    known, _, subset = name.removeprefix(PREFIX).partition("/")
    try:
        task = mteb.get_task(known)
    except KeyError:
        names = [each.metadata.name for each in mteb.get_tasks()]
        near = difflib.get_close_matches(known, names, 3, 0.3)
        hint = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ConfigError(f"{name}: mteb has no task '{known}'{hint}") from None
    if task.metadata.type not in _READERS:
        raise ConfigError(f"{name}: its type is {task.metadata.type}; read are the types {', '.join(_READERS)}")
    if subset:
        if subset not in task.hf_subsets:
            raise ConfigError(f"{name}: the task has no subset '{subset}'.{nearest(subset, task.hf_subsets)}")
        task = mteb.get_task(known, hf_subsets=[subset])
    return task


def _tags(task: Any) -> dict[str, list[str]]:
    """Return the languages of each subset; a script is named where a language of the task is in several."""
    declared = {subset: task.metadata.hf_subsets_to_langscripts[subset] for subset in task.hf_subsets}
    # mteb declares codes of ISO 639-3 with a script, such as deu-Latn.
    short = {each: primary_language(parse_tag(each.split("-")[0])) for each in chain(*declared.values())}
    counts = Counter(short.values())
    tag = {
        each: parse_tag(code if counts[code] == 1 else "-".join([code, *each.split("-")[1:]]))
        for each, code in short.items()
    }
    return {subset: [tag[each] for each in languages] for subset, languages in declared.items()}


def _part(task: Any, subset: str, split: str) -> Any:
    """Return the data of a subset; a task with one subset may have none in its data."""
    return task.dataset[subset][split] if subset in task.dataset else task.dataset[split]


def _retrieval(name: str, task: Any, split: str, tags: Mapping[str, list[str]]) -> RetrievalData:
    """Return corpus, queries and judgements; ids of several subsets begin with the subset."""
    labels, queries, corpus = list[Judgement](), dict[str, JudgedText](), dict[str, JudgedText]()
    for subset, languages in tags.items():
        part, before = _part(task, subset, split), f"{subset}:" if len(tags) > 1 else ""
        for found, rows in ((corpus, part["corpus"]), (queries, part["queries"])):
            texts = {str(row["id"]): " ".join(row[key] for key in ("title", "text") if row.get(key)) for row in rows}
            language = _side(subset, languages, list(texts.values()))
            for uid, text in texts.items():
                place = f"{name}: {subset}, {uid}"
                found[f"{before}{uid}"] = JudgedText(place, text_or_nothing(text, place), language)
        for query, grades in part["relevant_docs"].items():
            for document, grade in grades.items():
                place = f"{name}: {subset}, query {query}"
                labels.append(Judgement(place, split, f"{before}{query}", f"{before}{document}", max(float(grade), 0)))
    known, ignored = sorted(set(chain(*tags.values()))), bool(task.ignore_identical_ids)
    return judged_data(labels, queries, corpus, known, name, (split,), ignored)


def _side(subset: str, languages: Sequence[str], texts: Sequence[str]) -> str:
    """Return the language of all queries or all documents of a subset; empty where each text has its own."""
    if len(set(languages)) == 1:
        return languages[0]
    if subset == "default" or len(set(languages)) > 2:
        return ""
    # mteb declares two languages, but not the language of the queries.
    found = Counter(filter(is_known, map(detector(sorted(set(languages))), texts[:_SAMPLE])))
    return found.most_common(1)[0][0] if found else ""


def _similarity(name: str, task: Any, split: str, tags: Mapping[str, list[str]]) -> SimilarityData:
    """Return scored pairs, with scores from 0 to 1."""
    low, high = task.min_score, task.max_score
    pairs = []
    for subset, languages in tags.items():
        both = languages[0], languages[-1]
        for i, row in enumerate(_part(task, subset, split), 1):
            place = f"{name}: {subset}, row {i}"
            first, second = (strip_text(row[column] or "", place) for column in task.column_names)
            if not low <= row["score"] <= high:
                raise DataError(f"{place}: score: expected a number from {low} to {high}, got {row['score']}")
            score = (row["score"] - low) / (high - low)
            pairs.append(ScoredPair("-".join(both), both, first, second, score, f"{subset}-{i}"))
    return SimilarityData(tuple(pairs))


def _translation(name: str, task: Any, split: str, tags: Mapping[str, list[str]]) -> TranslationData:
    """Return translations from the language that all subsets share, English if there are two."""
    shared = set.intersection(*(set(languages) for languages in tags.values()))
    if not shared:
        raise ConfigError(f"{name}: its pairs share no language; name one of them, such as {name}/{next(iter(tags))}")
    pivot = _ENGLISH if _ENGLISH in shared else min(shared)
    pairs = []
    for subset, languages in tags.items():
        columns = subset.split("-") if task.parallel_subsets else ("sentence1", "sentence2")
        if languages[0] != pivot:
            columns, languages = columns[::-1], languages[::-1]
        rows = task.dataset[split] if task.parallel_subsets else _part(task, subset, split)
        if "gold" in rows.column_names:
            raise ConfigError(f"{name}: {subset}: some of its sentences have no translation; such tasks are not read")
        for i, row in enumerate(rows, 1):
            source, target = (strip_text(row[column] or "", f"{name}: {subset}, row {i}") for column in columns)
            pairs.append(Translation(source, target, (pivot, languages[-1])))
    return TranslationData(tuple(pairs))


_READERS: dict[str, tuple[Callable[[str, Any, str, Mapping[str, list[str]]], Data], list[str]]] = {
    "Retrieval": (_retrieval, ["ndcg@10", "map@20", "mrr@10", "recall@100"]),
    "STS": (_similarity, ["spearman", "pearson"]),
    "BitextMining": (_translation, ["accuracy"]),
}
"""Type of a task → its reader and its measures."""


def _declared(name: str, task: Any, data: Data, measures: list[str]) -> Task:
    facts = task.metadata
    return Task(
        task=name,
        description=" ".join(facts.description.split()),
        kind=data.kind,
        reader="mteb",
        source=Source(paper=facts.name, url=str(facts.reference or ""), licence=str(facts.license or "not specified")),
        languages=sorted(data.languages),
        pairs=tuple(dict.fromkeys(pair.pair for pair in data.pairs)) if isinstance(data, SimilarityData) else (),
        encoder=DEFAULT_ENCODER,
        folds=Folds(method="none"),
        ignore_identical_ids=isinstance(data, RetrievalData) and data.ignore_identical_ids,
        measures=[str(Measure.parse(each, data.kind)) for each in measures],
        monitor=measures[0],
    )
