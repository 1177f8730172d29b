"""The ablations whose teacher is made of multilingual-e5-small: what its arms learn, and from what."""

import pytest
from click.testing import CliRunner

from benchmarks.mini import assistants
from benchmarks.paper import ablation_arms, ablations


@pytest.fixture
def places(tmp_path):
    folders = (tmp_path / name for name in ("out", "corpus", "data", "out/vocabulary"))
    return ablation_arms.Places(*folders, origin="e5")


@pytest.mark.parametrize("name", ablation_arms.ARMS_OF["e5"])
def test_arms_of_e5_learn_from_it_without_language_and_begin_with_its_own_words(places, name):
    flags = ablation_arms.flags_of(name, ablation_arms.Steps(20, 30, 10), places)
    assert bool(flags) == (name not in ("assistant", "three-stages"))  # the assistant is cut out of e5
    if flags:
        assert flags[flags.index("--teacher") + 1] == str(places.out / "teacher")
        assert "stages.contrast.outer.lr=0.0005" in flags
        # 1/384: the squared norm is 384 times the mean.
        assert ("stages.contrast.options.contrast_weight=2.6e-3" in flags) == (name != "without-mcl")
        assert name == "without-mcl" or flags[flags.index("--assistant") + 1] == str(places.out / "assistant/model")


def test_the_teacher_and_the_assistant_of_e5_are_made_of_its_words_and_have_a_map(places, monkeypatch):
    called = []
    for module in (ablations, assistants):
        monkeypatch.setattr(module, "metasearch", lambda *words: called.append(list(map(str, words))))
    for step in ablations.teachers(places):
        step.run()
    corpus, out = str(places.corpus), places.out
    assert [words[:2] + words[-1:] for words in called] == [
        ["compress", "e5", str(out / "trimmed")],
        ["neutralise", str(out / "trimmed"), str(out / "teacher")],
        ["compress", str(out / "trimmed"), str(out / "vocabulary")],
        ["neutralise", str(out / "vocabulary"), str(out / "assistant/model")],
    ]
    assert called[2][2:6] == ["--trim-vocab", corpus, "--vocabulary", "32000"]


def test_a_folder_of_one_teacher_is_not_taken_for_that_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(ablations, "run", lambda *given: False)
    monkeypatch.setattr(ablations, "measure", lambda *given: False)
    words = ["--data", str(tmp_path), "-o", str(tmp_path / "out"), "--results", str(tmp_path / "rows.jsonl")]
    assert CliRunner().invoke(ablations.main, words).exit_code == 0
    result = CliRunner().invoke(ablations.main, [*words, "--teacher", "e5"])
    assert result.exit_code == 2
    assert "begun with teacher minilm, not e5; choose another folder with -o" in result.output


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--only", "ema"], "unknown arm of e5 'ema'. Known: assistant, full, three-stages, without-mcl"),
        (["--vocabulary", "."], "--vocabulary is of minilm; the assistant of e5 has words of e5"),
    ],
)
def test_what_arms_of_e5_do_not_have_is_refused(tmp_path, flags, said):
    words = ["--data", str(tmp_path), "--teacher", "e5", *flags, "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(ablations.main, words)
    assert result.exit_code == 2
    assert said in result.output
