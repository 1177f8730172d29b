"""The study with `e5`: which studies its arms need, and which rows are kept of them."""

import click
import pytest

from benchmarks.paper import cells, strong_encoder

ALIGNED = strong_encoder.Aligned("studies/aligned/model", "f00d")


def test_arms_through_a_map_without_one_and_of_the_aligned_encoder_are_studies_of_their_own():
    arms = ["zero-shot", "neutral", "neutral+maml:trans", "maml:trans", "aligned+maml:trans", "aligned"]
    assert list(strong_encoder._apart(arms, ALIGNED)) == [
        ("e5", ["zero-shot", "neutral", "neutral+maml:trans"]),
        ("e5", ["zero-shot", "neutral", "maml:trans"]),
        ("studies/aligned/model", ["aligned", "aligned+maml:trans"]),
    ]
    # What a study sets for all of its recipes is the same for all.
    merged = ["neutral+maml:trans", "neutral+maml+merge:trans", "aligned+best+merge:mixt"]
    assert list(strong_encoder._apart(merged, ALIGNED)) == [
        ("e5", ["neutral+maml:trans"]),
        ("e5", ["neutral+maml+merge:trans"]),
        ("e5", []),
        ("studies/aligned/model", ["aligned"]),
        ("studies/aligned/model", ["aligned", "aligned+best+merge:mixt"]),
    ]
    with pytest.raises(click.UsageError, match="aligned\\+maml:trans needs --aligned ENCODER"):
        list(strong_encoder._apart(arms, None))


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (("aligned", "aligned+maml:trans"), ["--learner", "zero-shot", "--recipe", "maml-e5:trans"]),
        (("aligned",), ["--learner", "zero-shot"]),
        (("aligned+best:mixt",), ["--learner", "zero-shot", "--recipe", "best:mixt"]),
        (
            ("aligned+best+merge:mixt",),
            ["--learner", "zero-shot", "--recipe", "best:mixt", "--set", "merge=[0.5,0.75,1]"],
        ),
        (
            ("zero-shot", "neutral+maml:trans"),
            ["--learner", "zero-shot,maml:trans", "--set", "maml:neutralise.when=before", "--set",
             "maml:neutralise.texts=150"],
        ),
        (
            ("zero-shot", "neutral+best:mixt"),
            ["--learner", "zero-shot", "--recipe", "best:mixt", "--set", "best:neutralise.when=before", "--set",
             "best:neutralise.texts=150"],
        ),
    ],
)  # fmt: skip
def test_a_study_of_the_aligned_encoder_has_the_recipes_of_e5_and_no_map(monkeypatch, tmp_path, lacking, words):
    called = []
    monkeypatch.setattr(strong_encoder, "metasearch", lambda *arguments: called.append(list(map(str, arguments))))
    missing = cells.Missing(0, lacking, (0, 3))
    strong_encoder._run(missing, [], tmp_path / "study", tmp_path / "rows.jsonl", ALIGNED)
    assert called == [["crossval", "--folds", "0,3,", "--seeds", "0", *words, "-o", str(tmp_path / "study")]]
