"""The encoder of the arms `aligned+…`: which texts it is made of, and its weights between two."""

import shutil

import torch

from benchmarks.mini.corpus_lines import read_lines
from benchmarks.paper import aligned
from helpers.mini import small_data, written
from metasearch.config.library import shipped
from metasearch.encoders.builtin import tiny
from metasearch.pipelines.compress import write
from metasearch.pipelines.factory import load_encoder


def steps(out, data, corpora=aligned.CORPORA):
    return {step.done.name: step for step in aligned.steps("demo", data, corpora, ["--seed", "1"], 0.25, out)}


def test_lines_are_of_corpora_of_sentences_and_of_the_languages_of_the_task(tmp_path, capsys):
    data = small_data(tmp_path / "data")
    shutil.copytree(shipped() / "demo", data / "demo")
    written(data / "parallel", nl=["sentence 1\tzin 1\tntrex"])  # no language of the task
    steps(tmp_path, data)["lines"].run()
    assert "parallel: no line of flores, tico19 in the languages of demo" in capsys.readouterr().err
    lines = list(read_lines(tmp_path / "lines"))
    # Of the 33 lines of German, one is of Tatoeba.
    assert [(line.language, line.corpus) for line in lines] == [("de", "ntrex")] * 32
    shutil.rmtree(tmp_path / "lines")
    steps(tmp_path, data, ["tatoeba"])["lines"].run()
    assert [(line.language, line.corpus) for line in read_lines(tmp_path / "lines")] == [("de", "tatoeba")]


def test_wortsman_et_al_2022_equation_1_weights_are_on_the_line_between_two_encoders(tmp_path):
    first, second = tiny.build(seed=0), tiny.build(seed=0)
    with torch.no_grad():
        for weight in second.embedder.parameters():
            weight += 1
    for name, encoder in (("neutral", first), ("run/model", second)):
        write(encoder, tmp_path / name)
    steps(tmp_path, tmp_path)["model"].run()  # its share is 0.25
    made = load_encoder(str(tmp_path / "model"))
    for before, now in zip(first.embedder.parameters(), made.embedder.parameters(), strict=True):
        torch.testing.assert_close(now, before + 0.25)
