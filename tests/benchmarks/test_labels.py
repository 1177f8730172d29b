"""The curve over the number of labels: what is trained, which rows are kept, and what its table says."""

from benchmarks.paper import labels
from metasearch.config.library import Library


def test_sets_are_as_large_as_the_labels_and_no_label_of_dev_is_read(tmp_path):
    names = [labels.declare(tmp_path, count, start) for start in ("aligned", "neutral") for count in (8, 128)]
    assert names == ["best-aligned-8", "best-aligned-128", "best-neutral-8", "best-neutral-128"]
    few, many, *through = [Library([tmp_path / "tasks"]).recipe(name) for name in names]
    assert [(each.labels, each.episodes.k, each.episodes.q) for each in (few, many)] == [(8, 8, 8), (128, 64, 64)]
    assert all(each.budget.meta_valid == 0 for each in (few, many, *through))
    assert [each.neutralise and each.neutralise.when for each in (few, *through)] == [None, "before", "before"]
    # All else is that of the recipe.
    best = Library().recipe("best")
    assert (few.loss, few.outer, few.episodes.negatives) == (best.loss, best.outer, best.episodes.negatives)
