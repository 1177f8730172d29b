"""A study as rows of results: each arm's scores, its differences with intervals and tests, its bias and its budget."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import numpy as np

from benchmarks.common.rows import Row
from benchmarks.paper.maml_align_paper import MAIN_ARMS
from metasearch.errors import ConfigError
from metasearch.spec.library import Library
from metasearch.spec.task import Task
from metasearch.study.arms import Arm, digest, settings_of
from metasearch.study.bias import Bias, bias_of, mean
from metasearch.study.compare import Compared, Comparison, compare, over_folds
from metasearch.study.paired import difference, figures, pair
from metasearch.study.statistics import bootstrap
from metasearch.study.statistics.paired import holm, paired_test
from metasearch.study.study import Study

FEW_SHOT, ZERO_SHOT = "few-shot", "zero-shot"


def study_rows(
    study: Study, encoder: str, resamples: int = bootstrap.RESAMPLES, references: Sequence[Arm] | None = None
) -> list[Row]:
    """Return a row of each arm, the baseline first.

    Args:
        study: as it was read.
        encoder: as it is to be called.
        resamples: of the bootstrap.
        references: what all arms are compared with; by default zero-shot, and the rows of Table 1 that the paper puts
            in an order.

    Raises:
        ConfigError: there is nothing to compare.
        RunFolderError: a run kept no questions.
    """
    measure, pool, _ = study.select()
    groups = groups_of(Library().task(study.task), study.languages)
    compared = {arm.label: _against(study, arm, groups, resamples) for arm in references or _references(study)}
    changes = bias_changes(study)
    shared = {
        "task": study.task,
        "encoder": encoder,
        "measure": measure,
        "pool": pool,
        "folds": study.folds,
        "seeds": study.seeds,
        "study": digest({arm.label: f"{arm.settings} {study.folds} {study.seeds}" for arm in study.arms}),
    }
    stamp = {"data": study.data, "versions": dict(study.versions)}
    return [
        {
            **shared,
            "learner": arm.learner,
            "mode": arm.mode,
            **_scores(study, arm, groups, encoder),
            "against": {label: by_arm[arm.label] for label, by_arm in compared.items() if arm.label in by_arm},
            **changes.get(arm.label, {}),
            **_budget(study, arm),
            **stamp,
        }
        for arm in study.arms
    ]


def groups_of(task: Task, languages: Sequence[str]) -> dict[str, list[str]]:
    """Return the languages that episodes are drawn in, and those that are only tested, where there are such.

    A language pair such as `tr-en` is drawn where one of its languages is; those of STSB_Multi all are.
    """
    drawn = {code for chains in task.arrangements.values() for chain in chains for code in chain.languages}
    few = [language for language in languages if drawn & set(language.split("-"))]
    zero = [language for language in languages if language not in few]
    return {FEW_SHOT: few, ZERO_SHOT: zero} if few and zero else {}


def _references(study: Study) -> list[Arm]:
    main = MAIN_ARMS.get(study.task, ())
    return [study.baseline, *(arm for arm in study.arms if (arm.learner, arm.mode) in main)]


def _scores(study: Study, arm: Arm, groups: Mapping[str, Sequence[str]], encoder: str) -> Row:
    selection, dev = study.select(), study.select()._replace(split="dev")
    folds = study.by_fold(arm, selection)
    languages = {
        language: fmean(
            fmean(value for each in runs for (own, _), value in each.values(*selection).items() if own == language)
            for runs in folds.values()
        )
        for language in study.languages
    }
    total = over_folds(list(folds.values()), selection)
    dev_runs = list(study.by_fold(arm, dev).values())
    return {
        "label": arm.label,
        "trained": encoder if arm.encoder == study.baseline.encoder else arm.encoder,
        "recipe": arm.recipe,
        "languages": languages,
        "mean": total.mean,
        "sd": total.sd,
        "groups": {name: fmean(languages[code] for code in codes) for name, codes in groups.items()},
        "dev": over_folds(dev_runs, dev).mean if dev_runs else None,
    }


def _against(study: Study, baseline: Arm, groups: Mapping[str, Sequence[str]], resamples: int) -> dict[str, Row]:
    """Return label → what an arm has more than a baseline, of all other arms."""
    comparison = compare(study, baseline, resamples=resamples)
    return {
        each.arm.label: {**_tested(each), "groups": _of_groups(study, comparison, each, groups)}
        for each in comparison.arms
    }


def _tested(each: Compared) -> Row:
    """Return a difference: `low` and `high` are of these models, `p` and `d_z` of the t-test as in the papers."""
    return {
        "difference": each.difference,
        "low": each.interval.low,
        "high": each.interval.high,
        "training": {**asdict(each.training), "holm": each.holm} if each.training else None,
        "by_fold": {str(fold): value for fold, value in each.by_fold.items()},
        "heterogeneity": asdict(each.heterogeneity) if each.heterogeneity else None,
        "p": each.test.p,
        "d_z": each.test.effect,
        "pairs": each.test.n,
        "mark": each.mark,
        "languages": {
            language: {"difference": own.difference, "low": own.interval.low, "high": own.interval.high}
            for language, own in each.languages.items()
        },
    }


def _of_groups(study: Study, comparison: Comparison, each: Compared, groups: Mapping[str, Sequence[str]]) -> Row:
    """Return group → difference with its interval, on the resamples of the comparison itself."""
    if not groups:
        return {}
    selection = study.select(comparison.measure, comparison.pool)
    pairs = list(pair(study, each.arm, comparison.baseline, selection).runs.values())
    resampled_figures = figures(
        (runs for both in pairs for runs in both),
        study.languages, selection, comparison.resamples, comparison.seed,
    )  # fmt: skip
    own, other, resampled = difference(pairs, resampled_figures)
    rows = {}
    for name, codes in groups.items():
        at = [study.languages.index(code) for code in codes]
        interval = bootstrap.interval(resampled[:, at].mean(axis=1), comparison.level)
        rows[name] = {"difference": float((own - other)[at].mean()), "low": interval.low, "high": interval.high}
    return rows


@dataclass(frozen=True)
class _Folds:
    """Language bias of an arm on each fold, seeds averaged."""

    by_fold: Mapping[int, Bias]

    def values(self, folds: Sequence[int]) -> list[float]:
        """Return the bias of each fold, the mean over languages."""
        return [self.by_fold[fold].figures.bias for fold in folds]


def bias_changes(study: Study) -> dict[str, Row]:
    """Return label → bias of an arm, and how far it is from that of the baseline; empty where nothing was ranked.

    The change is tested as scores are: Student's t over the means of folds, Holm's correction over the arms.

    Raises:
        RunFolderError: a run kept no rankings.
    """
    by_arm = {arm: ranked for arm in study.arms if (ranked := _bias_by_fold(study, arm)).by_fold}
    if study.baseline not in by_arm:
        return {}
    before, rows, ps = by_arm[study.baseline], {}, {}
    for arm, after in by_arm.items():
        whole = mean(list(after.by_fold.values()))
        spread = None if whole.spread is None else whole.spread.bias
        rows[arm.label] = {"bias": whole.figures.bias, "bias_sd": spread, "bias_excess": whole.figures.excess}
        both = sorted(before.by_fold.keys() & after.by_fold.keys())
        if arm == study.baseline or not both:
            continue
        values, others = np.array(after.values(both)), np.array(before.values(both))
        there = np.isfinite(values) & np.isfinite(others)
        test = paired_test(values[there].tolist(), others[there].tolist())
        ends = {"low": test.low, "high": test.high, "p": test.p, "over": "folds"}
        rows[arm.label]["bias_change"] = {"difference": test.mean, **ends}
        ps[arm.label] = test.p
    for label, p in zip(ps, holm(list(ps.values())), strict=True):
        rows[label]["bias_change"]["holm"] = p
    return rows


def _bias_by_fold(study: Study, arm: Arm) -> _Folds:
    seeds: dict[int, list[Bias]] = {}
    for scored in study.of(arm):
        if (one := bias_of(scored)) is not None:
            seeds.setdefault(scored.fold, []).append(one)
    return _Folds({fold: mean(each) for fold, each in seeds.items()})


def _budget(study: Study, arm: Arm) -> Row:
    """Return how long the cells of an arm took and trained, means over them, and the settings that they share."""
    cells = study.of(arm)
    if not cells:
        raise ConfigError(f"{study.name}: {arm.label} has no runs")
    seconds = [each.run.facts["seconds"] for each in cells if "seconds" in each.run.facts]
    row: Row = {"seconds": fmean(seconds) if seconds else None}
    if arm.mode is None:
        return row
    steps = [each.run.facts["steps"] for each in cells if "steps" in each.run.facts]
    settings = settings_of(cells[0].run.config)
    return {
        **row,
        "steps": fmean(steps) if steps else None,
        "kept": fmean(each.rows[0]["step"] for each in cells),
        "episodes": fmean(steps) * int(settings["recipe.budget.meta_batch"]) if steps else None,
        "settings": dict(settings),
    }
