"""Writes run folders and studies as real runs leave them, from random scores of a given quality; takes milliseconds.

Without an encoder: the score of a question and a candidate is noise, plus `quality` where the candidate is relevant,
plus `bias` where both have the same language. Half of the noise is shared by all learners, as in real runs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from helpers.configs import nested
from helpers.rankings import search_by
from metasearch.config import yaml
from metasearch.config.measure import Measure
from metasearch.config.recipe import Outer, Recipe
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.config.seeding import stream
from metasearch.data.records import Candidate, Question
from metasearch.evaluation.scores import Evaluation, Score, build_ranking
from metasearch.runs.per_query_results import QueryResults, query_results_path

ZERO_SHOT = "zero-shot"
VERSIONS = {"metasearch": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}
ASKED = {"ar": "أي منارة قديمة؟", "th": "ผึ้งทำอะไร", "el": "Πού είναι ο φάρος;"}
"""Text of questions of a language, before their id; of the others it is `Where is <it> & why`."""


@dataclass(frozen=True)
class Made:
    """One way to train, as it is pretended; `rate` is an example of a setting, names are by default the key in `arms`.

    `quality` is added to the score of what is relevant (for similarity, the weight of gold), `bias` to that of the
    language of the question.
    """

    quality: float = 1.0
    bias: float = 0.0
    learner: str = ""
    mode: str = "trans"
    recipe: str = ""
    encoder: str = "tiny"
    rate: float = 3e-4
    prompts: Mapping[str, str] = field(default_factory=dict)
    trim: Sequence[str] = ()


@dataclass(frozen=True)
class Setting:
    """What the runs of a study share: questions (or rows) of each fold, each in all languages (or their pairs).

    `distractors` are candidates of each language without a question; with 0 `articles` each question has its own.
    """

    task: str = "demo"
    kind: Literal["retrieval", "similarity"] = "retrieval"
    questions: int = 8
    distractors: int = 4
    languages: Sequence[str] = ("ar", "de", "el")
    data: str = "4e8ffb836c3ab809"
    fold_seed: int | None = None
    measures: Sequence[Measure] = (Measure("map", 20), Measure("map"))
    versions: Mapping[str, str] = field(default_factory=lambda: dict(VERSIONS))
    articles: int = 0


def write_study(
    folder: Path,
    arms: Mapping[str, float | Made] | None = None,
    folds: Sequence[int] = (0, 1, 2),
    seeds: Sequence[int] = (0,),
    unfinished: Sequence[str] = (),
    **setting: Any,
) -> Path:
    """Write a study and return its folder.

    `arms` maps names of cells to a quality or more; every run but `zero-shot` scores zero-shot, too. Cells such as
    `maml/fold-0-seed-0` in `unfinished` are listed but not there. `setting` has fields of `Setting`.
    """
    ways = {name: made_of(name, made) for name, made in (arms or {ZERO_SHOT: 0.5, "maml": 1.5}).items()}
    start = ways.get(ZERO_SHOT, Made(0.5, learner=ZERO_SHOT))
    names = [f"{name}/fold-{fold}-seed-{seed}" for name in ways for fold in folds for seed in seeds]
    for name, (arm, fold, seed) in zip(names, ((w, f, s) for w in ways for f in folds for s in seeds), strict=True):
        if name not in unfinished:
            write_run(folder / "cells" / name, ways[arm], fold, seed, start, **setting)
    folder.mkdir(parents=True, exist_ok=True)
    tree = {"cells": names, "config": {"task": Setting(**setting).task, "folds": list(folds)}}
    (folder / "study.yaml").write_text(yaml.dump(tree), encoding="utf-8")
    return folder


def made_of(name: str, made: float | Made) -> Made:
    """Return all that is pretended of a way to train."""
    made = made if isinstance(made, Made) else Made(made)
    return replace(made, learner=made.learner or name)


def write_run(path: Path, made: Made, fold: int = 0, seed: int = 0, start: Made | None = None, **setting: Any) -> Path:
    """Write a finished run and return its folder; `start` is the encoder before training."""
    shared = Setting(**setting)
    path.mkdir(parents=True)
    config = _config(made, fold, seed, shared)
    tree = {"data_fingerprint": shared.data, "config": config.model_dump(mode="json")}
    (path / "config.yaml").write_text(yaml.dump(tree), encoding="utf-8")
    before = replace(start or Made(0.5), learner=ZERO_SHOT, encoder=made.encoder)
    rows: list[dict[str, Any]] = []
    for way in (before, made) if made.learner != ZERO_SHOT else (made,):
        rows += _scored(path, config, way, shared)
    (path / "results.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if made.learner != ZERO_SHOT:
        (path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in _events(made)))
    hardware = {"seconds": 5.5, "peak_memory_mib": 628.2, "processor": "a processor", "cores": 2, "threads": 1}
    facts = {**hardware, "system": "Linux x86_64", "device": "cpu"}
    (path / "facts.json").write_text(json.dumps(facts if made.learner == ZERO_SHOT else facts | {"steps": 4}))
    (path / "report.md").write_text(f"# {made.learner} on {shared.task}\n")
    (path / ".lock").touch()
    return path


def elsewhere(path: Path) -> Path:
    """Make a run one of an encoder that was made elsewhere, with its own scores alone; return its folder."""
    rows = [json.loads(line) for line in (path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row | {"mode": None, "recipe": None} for row in rows if row["learner"] != ZERO_SHOT]
    (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _config(made: Made, fold: int, seed: int, shared: Setting) -> RunConfig | ScoreConfig:
    where: dict[str, Any] = {"task": shared.task, "fold": fold, "fold_seed": shared.fold_seed, "seed": seed}
    if made.learner == ZERO_SHOT:
        return nested(ScoreConfig, encoder=made.encoder, prompts=made.prompts, trim=made.trim, **where)
    recipe = Recipe(
        recipe=made.recipe or f"{made.learner}-tiny",
        description="of a test",
        learner=made.learner,
        outer=Outer(lr=made.rate),
    )
    where |= {"prompts": made.prompts, "trim": made.trim}
    return nested(RunConfig, mode=made.mode, encoder=made.encoder, recipe=recipe, max_steps=4, **where)


def _scored(path: Path, config: RunConfig | ScoreConfig, way: Made, shared: Setting) -> Iterable[dict[str, Any]]:
    """Return the rows of an encoder, and keep the results of its test questions."""
    fold = config.data.fold
    facts: dict[str, Any] = {"task": shared.task, "encoder": config.encoder.name, "fold": fold}
    facts |= {"fold_seed": config.data.fold_seed, "seed": config.seed, "mode": None, "recipe": None}
    if isinstance(config, RunConfig):
        facts |= {"mode": str(config.mode), "recipe": config.recipe.recipe}
    facts |= {"learner": way.learner, "step": 0 if way.learner == ZERO_SHOT else 4}
    stamp = {"data": shared.data, "versions": dict(shared.versions)}
    for split in ("dev", "test"):
        trained = () if way.learner == ZERO_SHOT else (way.mode, way.recipe, str(way.rate))
        noises = [stream(fold, split), stream(config.seed, split, fold, way.learner, way.encoder, *trained)]
        found = (_retrieval if shared.kind == "retrieval" else _similarity)(way, fold, split, shared, noises)
        if split == "test":
            found.questions.save(
                query_results_path(path, shared.task, way.learner, split), facts | {"split": split} | stamp
            )
        yield from ({**facts, "split": split, **row, **stamp} for row in found.rows())


def _noise(noises: Sequence[np.random.Generator], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return standard normal noise, half of whose variance is shared by all learners."""
    common, own = (noise.standard_normal(shape) for noise in noises)
    return (common + own) / np.sqrt(2)


def _retrieval(way: Made, fold: int, split: str, shared: Setting, noises: Sequence[np.random.Generator]) -> Evaluation:
    ids = [f"{split}{fold}-article-{i}" for i in range(shared.questions)]
    others = [f"{split}{fold}-other-{i}" for i in range(shared.distractors)]
    languages = sorted(shared.languages)
    questions = [
        Question(i, lang, f"{ASKED.get(lang, 'Where is <it> & why')} {i}", i) for lang in languages for i in ids
    ]
    pool = [
        Candidate(f"{lang}_{i}_0", lang, f"Sentence {i} in {lang}.", i, (i,) if i in ids else ())
        for lang in languages
        for i in (*ids, *others)
    ]
    answers = np.array([[q.id in c.answers for c in pool] for q in questions])
    same = np.array([[q.language == c.language for c in pool] for q in questions])
    scores = (_noise(noises, answers.shape) + way.quality * answers + way.bias * same).astype(np.float32)
    found = search_by(scores, questions, pool)
    listed: list[Score] = []
    units, columns = {}, {}
    for at, asked in enumerate(languages):
        mine = slice(at * len(ids), (at + 1) * len(ids))
        pools = [("multilingual", "all"), *(("bilingual", x) for x in languages if x != asked), ("monolingual", asked)]
        for name, inside in pools if split == "test" else pools[:1]:
            ranks = found.ranks(mine, *((None, at) if inside == "all" else (languages.index(inside),)))
            units[name, asked, inside] = tuple(ids)
            for measure in (each for each in shared.measures if inside == "all" or not each.load().languages):
                values = measure.load().function(ranks, measure.k)
                columns[str(measure), name, asked, inside] = values
                listed.append(Score(str(measure), name, asked, inside, float(values.mean()), len(values)))  # type: ignore[arg-type]
    kept = QueryResults(units, columns, build_ranking(questions, pool, found), _articles(ids, shared.articles))
    return Evaluation(tuple(listed), kept)


def _articles(ids: Sequence[str], count: int) -> dict[str, str]:
    """Return question → article, in turns."""
    return {unit: f"article-{i % count}" for i, unit in enumerate(ids) if count}


def _similarity(way: Made, fold: int, split: str, shared: Setting, noises: Sequence[np.random.Generator]) -> Evaluation:
    ids = tuple(f"{split}{fold}-row-{i}" for i in range(shared.questions))
    pairs = [f"{a}-{b}" for a in shared.languages for b in shared.languages if a <= b]
    gold = stream(fold, split, "gold").random(len(ids))
    listed: list[Score] = []
    units, columns = {}, {}
    noise = _noise(noises, (len(pairs), len(ids)))
    for pair, own in zip(pairs, noise, strict=True):
        cell = ("pairs", pair, "")
        predicted = np.tanh((way.quality * (2 * gold - 1) + own) / 3)
        units[cell] = ids
        columns |= {("predicted", *cell): predicted, ("gold", *cell): gold}
        for measure in ("pearson", "spearman"):
            value = Measure(measure).load().function(predicted, gold)
            listed.append(Score(measure, "pairs", pair, "", value, len(ids)))
    return Evaluation(tuple(listed), QueryResults(units, columns, articles={}))


def _events(made: Made) -> list[dict[str, Any]]:
    phases = ["meta-train", "meta-train", "meta-valid", "meta-valid"]
    steps = [
        {"step": i, "total": 4, "phase": phase, "loss": 1 / i, "task": 1 / i, "grad": 0.1}
        for i, phase in enumerate(phases, 1)
    ]
    start, end = ({"step": step, "dev": 0.1 + step * made.quality / 100, "best": step > 0} for step in (0, 4))
    return [start, *steps, end]
