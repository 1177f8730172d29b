"""A study as rows of results: scores, differences with intervals, language bias and settings of each arm."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean

import numpy as np

from benchmarks.common.rows import Row
from benchmarks.paper.maml_align_paper import MAIN_ARMS
from metasearch.config.library import Library
from metasearch.config.task import Task
from metasearch.errors import ConfigError
from metasearch.evaluation.statistics.jackknife import spread
from metasearch.evaluation.study.bias import measure_arm_bias
from metasearch.evaluation.study.compare import ArmComparison, Comparison, compare, over_folds
from metasearch.evaluation.study.paired import Sample, difference, figures, pair
from metasearch.evaluation.study.read import digest, select_settings
from metasearch.evaluation.study.study import Arm, Study

FEW_SHOT, ZERO_SHOT = "few-shot", "zero-shot"


def study_rows(study: Study, encoder: str, references: Sequence[Arm] | None = None) -> list[Row]:
    """Return a row of each arm, the baseline first.

    Args:
        study: the study.
        encoder: name of the encoder in the rows.
        references: baselines of all arms; by default zero-shot and the rows of Table 1.
    """
    measure, pool, _ = study.select()
    groups = groups_of(Library().task(study.task), study.languages)
    compared = {arm.label: _against(study, arm, groups) for arm in references or _references(study)}
    bias = bias_by_arm(study)
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
            **bias.get(arm.label, {}),
            **_settings(study, arm),
            **stamp,
        }
        for arm in study.arms
    ]


def groups_of(task: Task, languages: Sequence[str]) -> dict[str, list[str]]:
    """Return the languages that episodes are drawn in, and those that are only tested, where there are such.

    A language pair such as `tr-en` is drawn where one of its languages is; those of STSB_Multi all are.
    """
    drawn = {code for chains in task.arrangements.values() for chain in chains for code in chain.languages}
    pairs = dict(zip(task.pairs, task.language_pairs, strict=True))
    few = [language for language in languages if drawn & set(pairs.get(language, (language,)))]
    zero = [language for language in languages if language not in few]
    return {FEW_SHOT: few, ZERO_SHOT: zero} if few and zero else {}


def first_before(study: Study) -> Arm:
    """Return the first encoder before training, or the first arm of a study without one."""
    return next((arm for arm in study.arms if arm.zero_shot), study.arms[0])


def _references(study: Study) -> list[Arm]:
    main = MAIN_ARMS.get(study.task, ())
    return [first_before(study), *(arm for arm in study.arms if (arm.learner, arm.mode) in main)]


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
        "trained": encoder if arm.encoder == first_before(study).encoder else arm.encoder,
        "recipe": arm.recipe,
        "languages": languages,
        "mean": total.mean,
        "sd": total.sd,
        "groups": {name: fmean(languages[code] for code in codes) for name, codes in groups.items()},
        "dev": over_folds(dev_runs, dev).mean if dev_runs else None,
    }


def _against(study: Study, baseline: Arm, groups: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """Return label → what an arm has more than a baseline, of all other arms."""
    comparison = compare(study, baseline)
    return {
        each.arm.label: {**_tested(each), "groups": _of_groups(study, comparison, each, groups)}
        for each in comparison.arms
    }


def _tested(each: ArmComparison) -> Row:
    """Return a difference: `low` and `high` are of these models, `training` is over training again."""
    return {
        "difference": each.difference,
        "low": each.interval.low,
        "high": each.interval.high,
        "training": {**asdict(each.training), "holm": each.holm} if each.training else None,
    }


def _of_groups(study: Study, comparison: Comparison, each: ArmComparison, groups: Mapping[str, Sequence[str]]) -> Row:
    """Return group → difference with its interval, as the comparison has them."""
    if not groups:
        return {}
    selection = study.select(comparison.measure, comparison.pool)
    pairs = list(pair(study, each.arm, each.against, selection).runs.values())
    known = figures((runs for both in pairs for runs in both), study.languages, selection)
    rows = {}
    for name, codes in groups.items():
        at = [study.languages.index(code) for code in codes]
        strata = [difference(_over(known[own], at), _over(known[other], at)) for own, other in pairs]
        value = np.mean([each.values for each in strata], axis=0)
        (interval,) = spread(strata).intervals(value, comparison.level)
        rows[name] = {"difference": float(value[0]), "low": interval.low, "high": interval.high}
    return rows


def _over(figure: Sample, columns: Sequence[int]) -> Sample:
    """Return the figure of the mean of some languages alone."""
    values, without, shares = (
        part[..., columns].mean(axis=-1, keepdims=True) for part in (figure.values, figure.without, figure.shares)
    )
    return replace(figure, values=values, without=without, shares=shares)


def bias_by_arm(study: Study) -> dict[str, Row]:
    """Return label → language bias of an arm, mean and deviation over folds; empty where nothing was ranked."""
    rows = {}
    for arm in study.arms:
        if found := measure_arm_bias(study, arm):
            rows[arm.label] = {"bias": found[0], "bias_sd": found[1]}
    return rows


def _settings(study: Study, arm: Arm) -> Row:
    """Return the settings that the cells of a trained arm share."""
    cells = study.of(arm)
    if not cells:
        raise ConfigError(f"{study.name}: {arm.label} has no runs")
    return {} if arm.mode is None else {"settings": dict(select_settings(cells[0].run.config))}
