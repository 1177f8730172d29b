"""A comparison of learners, against what can be computed by hand from the rows, and with each article left out."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from helpers.studies import elsewhere, write_study
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.evaluation.study import paired
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study
from metasearch.runs.per_query_results import load, query_results_path

ARMS = {"zero-shot": 0.5, "maml": 1.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("compare") / "study", ARMS, questions=12)


@pytest.fixture(scope="module")
def study(folder):
    return read_study([folder])


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Return a study with two seeds and four articles in each fold."""
    folder = tmp_path_factory.mktemp("seeds") / "study"
    return read_study([write_study(folder, ARMS, seeds=(1, 2), questions=12, articles=4)])


def rows_of(study, label, measure="map@20", pool="multilingual"):
    """Return fold → seed → language → value, of a pool with one score a language."""
    found = {}
    for each in study.of(study.arm(label)):
        values = {language: value for (language, _), value in each.values(measure, pool).items()}
        found.setdefault(each.fold, {})[each.seed] = values
    return found


def fold_language(study, label, **where):
    """Return the fold × language means, seeds averaged first, `(F, L)`."""
    folds = rows_of(study, label, **where)
    return np.array([np.mean([list(seed.values()) for seed in folds[fold].values()], axis=0) for fold in sorted(folds)])


def only(study, **options):
    (arm,) = compare(study, **options).arms
    return arm


def test_a_figure_is_the_mean_over_folds_of_the_mean_over_languages(study):
    found, own, other = only(study), fold_language(study, "maml"), fold_language(study, "zero-shot")
    assert found.value.mean == pytest.approx(own.mean(axis=1).mean())
    assert found.baseline.mean == pytest.approx(other.mean(axis=1).mean())
    assert found.difference == pytest.approx((own - other).mean())


def test_each_language_has_its_difference_and_interval(study):
    found = only(study)
    expected = (fold_language(study, "maml") - fold_language(study, "zero-shot")).mean(axis=0)
    assert list(found.languages) == ["ar", "de", "el"]
    assert [each.difference for each in found.languages.values()] == pytest.approx(list(expected))
    assert all(each.interval.low < each.difference < each.interval.high for each in found.languages.values())
    by_fold = fold_language(study, "maml") - fold_language(study, "zero-shot")
    for i, each in enumerate(found.languages.values()):
        assert (each.training.low, each.training.high) == pytest.approx(student(by_fold[:, i]))
    assert found.wins == (expected > 0).sum()


def left_out_by_hand(study, statistic, pool="multilingual", article=lambda unit: unit, level=0.95):
    """Return Student's interval of the jackknife: each article of a fold is left out in all languages, written out."""
    values, variance, groups = [], [], []
    for fold in study.folds:
        zero, maml = (
            next(each for each in study.of(study.arm(label)) if each.fold == fold).questions
            for label in ("zero-shot", "maml")
        )
        cells = [cell for cell in zero.units if cell[0] == pool]

        def difference(left_out, zero=zero, maml=maml, cells=cells):
            kept = {cell: [i for i, u in enumerate(zero.units[cell]) if article(u) != left_out] for cell in cells}
            return np.mean([statistic(maml, cell, kept[cell]) - statistic(zero, cell, kept[cell]) for cell in cells])

        articles = sorted({article(unit) for unit in zero.units[cells[0]]})
        values.append(difference(None))
        without = np.array([difference(each) for each in articles])
        variance.append((len(articles) - 1) / len(articles) * ((without - values[-1]) ** 2).sum())
        groups.append(len(articles))
    se = sum(variance) ** 0.5 / len(values)
    return stats.t.interval(level, sum(groups) - len(groups), np.mean(values), se)  # of articles of equal size


def ap(kept, cell, rows):
    return kept.columns["map@20", *cell][rows].mean()


def test_the_interval_of_fixed_models_is_that_of_questions_left_out_by_hand(study):
    found = only(study).interval
    assert (found.low, found.high) == pytest.approx(left_out_by_hand(study, ap))


def student(values, level=0.95):
    """Return Student's interval of a mean, x̄ ± t s / √n."""
    return stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))


def test_the_main_interval_is_students_over_folds_with_seeds_averaged_first(seeds):
    """The t-test over clusters of Ibragimov & Müller (2010)."""
    own = fold_language(seeds, "maml")
    by_fold = (own - fold_language(seeds, "zero-shot")).mean(axis=1)
    found = only(seeds)
    assert found.seeds == (1, 2)
    assert found.value.mean == pytest.approx(own.mean())
    assert (found.value.count, found.value.over) == (3, "folds")
    assert list(found.by_fold.values()) == pytest.approx(list(by_fold))
    assert (found.training.low, found.training.high) == pytest.approx(student(by_fold))
    assert found.training.p == pytest.approx(stats.ttest_1samp(by_fold, 0).pvalue)
    assert (found.training.df, found.training.over) == (2, "folds")


def test_the_questions_of_an_article_are_left_out_together(tmp_path):
    study = read_study([write_study(tmp_path / "s", ARMS, questions=12, articles=4)])
    found = only(study).interval
    expected = left_out_by_hand(study, ap, article=lambda unit: int(unit.rpartition("-")[2]) % 4)
    assert (found.low, found.high) == pytest.approx(expected)


def test_one_fold_and_seed_has_no_main_interval_and_its_mark_is_of_these_models(tmp_path):
    found = only(read_study([write_study(tmp_path / "s", ARMS, folds=(0,))]))
    assert (found.training, found.holm) == (None, None)
    assert found.interval.excludes(0.0)
    assert found.mark == "°"
    assert {each.mark for each in found.languages.values()} <= {"°", ""}


def test_one_fold_with_several_seeds_is_told_of_seeds_and_questions(tmp_path):
    found = only(read_study([write_study(tmp_path / "s", ARMS, folds=(0,), seeds=(1, 2, 3))]))
    assert found.training.over == "seeds and questions"
    assert found.training.low < found.interval.low < found.interval.high < found.training.high


def systems(folder, seeds=(0,)):
    """Return a study on three folds of zero-shot, MAML and two systems that were made elsewhere."""
    ways = {"zero-shot": 0.5, "maml": 1.5, "bm25": 0.9, "student": 1.0}
    write_study(folder, ways, seeds=seeds)
    for name in ("bm25", "student"):
        for run in (folder / "cells" / name).iterdir():
            elsewhere(run)
    return read_study([folder])


def test_systems_that_were_made_elsewhere_have_the_main_interval_and_leave_others_theirs(tmp_path):
    study = systems(tmp_path / "s")
    found = compare(study, study.arm("bm25"))
    for label, over in (("student", "questions"), ("zero-shot", "questions"), ("maml", "folds")):
        by_fold = (fold_language(study, label) - fold_language(study, "bm25")).mean(axis=1)
        training = found.of(study.arm(label)).training
        assert (training.low, training.high) == pytest.approx(student(by_fold))
        assert training.over == over


def test_a_student_of_several_seeds_adds_the_variance_of_its_seeds(tmp_path):
    study = systems(tmp_path / "s", seeds=(1, 2, 3))
    found = compare(study, study.arm("student")).of(study.arm("maml")).training
    by_fold = (fold_language(study, "maml") - fold_language(study, "student")).mean(axis=1)
    rows = rows_of(study, "student")
    by_seed = [np.mean([list(rows[fold][seed].values()) for fold in study.folds]) for seed in (1, 2, 3)]
    assert found.over == "folds and seeds"
    assert found.se**2 == pytest.approx(np.var(by_fold, ddof=1) / 3 + np.var(by_seed, ddof=1) / 3)


def test_equal_scores_of_other_numbers_of_seeds_are_no_difference(tmp_path):
    """The mean of three equal numbers is not that of two, to the last bit."""
    systems(tmp_path / "s", seeds=(1, 2, 3))
    study = read_study([without_seed(tmp_path / "s", value=0.1)])
    for each in compare(study).arms:
        assert (each.difference, each.mark, each.interval.excludes(0.0)) == (pytest.approx(0, abs=1e-15), "", False)
        assert each.training.p == 1.0


def without_seed(folder, value):
    """Set every score to a value, and take the third seed of the baseline out of a study."""
    for path in folder.glob("cells/*/*"):
        drop = path.parent.name == "zero-shot" and path.name.endswith("seed-3")
        rows = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
        rows = [row | {"value": value} for row in rows if path.parent.name == row["learner"]]
        (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        kept = query_results_path(path, "demo", path.parent.name, "test")
        results, facts = load(kept)
        columns = {key: np.full(len(own), value) for key, own in results.columns.items()}
        replace(results, columns=columns).save(kept, facts)
        if drop:
            shutil.rmtree(path)
    return folder


def test_a_comparison_names_the_arms_that_differ_on_few_articles(tmp_path):
    found = only(read_study([write_study(tmp_path / "s", ARMS, folds=(0,), questions=12, articles=4)]))
    assert found.differing == 4


@pytest.mark.parametrize("measure", ["pearson", "spearman"])
def test_the_interval_of_a_correlation_is_that_of_pairs_left_out_by_hand(measure, tmp_path):
    sizes = {"folds": (0, 1), "languages": ("ar",), "questions": 10}
    study = read_study([write_study(tmp_path / "sts", ARMS, kind="similarity", **sizes)])
    ranked = stats.rankdata if measure == "spearman" else np.asarray

    def statistic(kept, cell, rows):
        predicted, gold = (ranked(kept.columns[side, *cell][rows]) for side in ("predicted", "gold"))
        return np.corrcoef(predicted, gold)[0, 1]

    found = only(study, measure=measure)
    assert (found.interval.low, found.interval.high) == pytest.approx(left_out_by_hand(study, statistic, pool="pairs"))
    assert found.value.mean == pytest.approx(fold_language(study, "maml", measure=measure, pool="pairs").mean())


def test_a_correlation_of_another_package_is_computed_by_its_own_function(tmp_path, monkeypatch):
    """Here Spearman's, as if it had another name."""
    sizes = {"folds": (0, 1), "languages": ("ar",), "questions": 10}
    study = read_study([write_study(tmp_path / "sts", ARMS, kind="similarity", **sizes)])
    quick = only(study, measure="spearman").interval
    monkeypatch.setattr(paired, "_spearman", None)
    found = only(study, measure="spearman").interval
    assert (found.low, found.high) == pytest.approx((quick.low, quick.high))


def test_a_large_difference_is_marked_and_the_other_way_round_has_the_other_sign(study):
    found, back = only(study), only(study, baseline=study.arm("maml"))
    assert found.mark == back.mark == "*†"
    assert back.difference == pytest.approx(-found.difference)
    assert (back.interval.low, back.interval.high) == pytest.approx((-found.interval.high, -found.interval.low))
    assert (back.training.low, back.training.high) == pytest.approx((-found.training.high, -found.training.low))
    assert back.wins == 0


def without(folder, *names):
    for name in names:
        shutil.rmtree(folder / "cells" / name)
    return read_study([folder])


def strip(run):
    rows = (run / "results.jsonl").read_text().splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(row for row in rows if json.loads(row)["learner"] != "zero-shot"))


def test_an_encoder_as_it_is_may_have_fewer_seeds(tmp_path):
    folder = write_study(tmp_path / "s", ARMS, folds=(0,), seeds=(1, 2))
    strip(folder / "cells/maml/fold-0-seed-2")
    study = without(folder, "zero-shot/fold-0-seed-2")
    found = compare(study)
    assert found.arms[0].seeds == (1, 2)
    assert found.arms[0].value.mean == pytest.approx(fold_language(study, "maml").mean())
    assert found.missing[1:] == ("Fold 0: maml has seeds 1, 2 and zero-shot seed 1: averaged over them.",)


def test_trained_learners_are_compared_on_the_seeds_that_both_have(tmp_path):
    arms = {"zero-shot": 0.5, "maml": 1.5, "fine-tune": 0.7}
    folder = write_study(tmp_path / "s", arms, folds=(0, 1), seeds=(1, 2))
    study = without(folder, "maml/fold-0-seed-2")
    found = compare(study, study.arm("fine-tune"))
    maml = found.of(study.arm("maml"))
    own, other = rows_of(study, "maml"), rows_of(study, "fine-tune")
    folds = [np.mean(list(own[0][1].values())), np.mean([list(own[1][seed].values()) for seed in (1, 2)])]
    assert maml.value.mean == pytest.approx(np.mean(folds))
    folds = [np.mean(list(other[0][1].values())), np.mean([list(other[1][seed].values()) for seed in (1, 2)])]
    assert maml.baseline.mean == pytest.approx(np.mean(folds))
    assert "Fold 0: maml has seed 1 and fine-tune seeds 1, 2: compared on 1." in found.missing


def test_a_missing_cell_leaves_its_fold_out_and_is_named(tmp_path):
    arms = {"zero-shot": 0.5, "maml": 1.5, "fine-tune": 0.7}
    study = without(write_study(tmp_path / "s", arms), "maml/fold-1-seed-0")
    found = compare(study, study.arm("fine-tune"))
    maml = found.of(study.arm("maml"))
    assert maml.folds == (0, 2)
    assert maml.baseline.mean == pytest.approx(fold_language(study, "fine-tune")[[0, 2]].mean())
    assert any("run maml/fold-1-seed-0 is not finished" in note for note in found.missing)
    assert "maml has folds 0, 2 and fine-tune folds 0, 1, 2: compared on 0, 2." in found.missing


def test_a_learner_without_a_common_fold_is_left_out_and_named(tmp_path):
    folder = write_study(tmp_path / "s", {"maml": 1.5, "fine-tune": 0.7}, folds=(0, 1))
    study = without(folder, "maml/fold-1-seed-0", "fine-tune/fold-0-seed-0")
    found = compare(study, study.arm("fine-tune"))
    assert [each.arm.label for each in found.arms] == ["zero-shot"]
    assert found.missing[-1] == "maml has fold 0 and fine-tune fold 1: no fold in common."


@pytest.mark.parametrize("options", [{"level": 1.0}, {"measure": "map@2"}, {"pool": "bilingul"}])
def test_wrong_options_are_refused(options, study):
    with pytest.raises(ConfigError, match=r"level|'map@2'.*Did you mean|'bilingul'.*Did you mean"):
        compare(study, **options)


def test_a_run_without_its_questions_or_with_those_of_another_evaluation_is_refused(tmp_path, folder):
    study = shutil.copytree(folder, tmp_path / "study")
    kept = study / "cells/maml/fold-1-seed-0/queries/demo.maml.test.npz"
    shutil.copy(kept.with_name("demo.zero-shot.test.npz"), kept)
    with pytest.raises(DataError, match=r"fold-1-seed-0.*results\.jsonl has .*belong to different evaluations"):
        compare(read_study([study]))
    kept.unlink()
    with pytest.raises(RunFolderError, match=r"maml/fold-1-seed-0/queries/demo\.maml\.test\.npz"):
        compare(read_study([study]))


def test_other_questions_cannot_be_paired(tmp_path):
    folder = write_study(tmp_path / "s", {"maml": 1.5, "fine-tune": 0.7}, folds=(0,))
    strip(folder / "cells/fine-tune/fold-0-seed-0")
    longer = write_study(tmp_path / "longer", {"fine-tune": 0.7}, folds=(0,), questions=9)
    strip(longer / "cells/fine-tune/fold-0-seed-0")
    shutil.rmtree(folder / "cells/fine-tune")
    shutil.copytree(longer / "cells/fine-tune", folder / "cells/fine-tune")
    with pytest.raises(DataError, match="cannot be paired: their test questions or languages differ on fold 0"):
        compare(read_study([folder]))
