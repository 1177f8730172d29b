"""Augmented SBERT: which pairs are made, how they are scored and written, and what a stop leaves behind."""

import itertools

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from metasearch.data.scored import read_scored
from metasearch.encoders.builtin import tiny
from metasearch.encoders.cross_encoder import load_cross_encoder
from metasearch.errors import Interrupted
from metasearch.pipelines import augment as job
from metasearch.pipelines.augment import augment, find_candidates

WORDS = ["man", "dog", "horse", "child"], ["runs", "sleeps", "sings"], ["home", "away"]
SENTENCES = [f"A {who} {what} {where}." for who, what, where in itertools.product(*WORDS)]
PAIRS = [(SENTENCES[i], SENTENCES[i + 1]) for i in range(0, len(SENTENCES), 2)]


def folder_of(path, seed=0):
    """Save a BERT of one layer that scores pairs at random."""
    tokenizer = tiny.build().model.tokenizer
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        num_labels=1,
        initializer_range=0.5,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertForSequenceClassification(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Let names that are no folder fail at once, as without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def encoder():
    return tiny.build()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("models") / "cross")


@pytest.fixture(scope="module")
def scorer(model):
    return load_cross_encoder(str(model))


def unordered(pairs):
    return {frozenset(pair) for pair in pairs}


def brute_force(encoder, pairs, excluded, top):
    """Rank all other sentences for each sentence, and take away what is known or excluded."""
    sentences = sorted({text for pair in pairs for text in pair})
    vector = dict(zip(sentences, encoder.encode(sentences, "text").astype(np.float64), strict=True))
    found = set()
    for sentence in sentences:
        others = sorted(set(sentences) - {sentence}, key=lambda other: -vector[sentence] @ vector[other])
        found |= {frozenset((sentence, other)) for other in others[:top]}
    known = unordered(pairs)
    return found, found & known, (found - known) & unordered(excluded)


@pytest.mark.parametrize("top", [1, 3, 10])
def test_candidates_are_those_of_brute_force(encoder, top):
    excluded = [(SENTENCES[6], SENTENCES[0]), (SENTENCES[0], SENTENCES[2]), (SENTENCES[8], SENTENCES[2])]
    found, known, barred = brute_force(encoder, PAIRS, excluded, top)

    candidates = find_candidates(encoder, PAIRS, excluded, top)

    assert unordered(candidates.pairs) == found - known - barred
    assert len(candidates.pairs) == len(unordered(candidates.pairs))
    assert candidates.sentences == len(SENTENCES)
    assert (candidates.neighbours, candidates.known, candidates.excluded) == (len(found), len(known), len(barred))


@pytest.fixture(scope="module")
def candidates(encoder):
    return find_candidates(encoder, PAIRS, top=4)


def test_scores_are_the_cross_encoders_written_as_0_to_5(candidates, scorer, tmp_path):
    output = tmp_path / "new" / "sts-en-augmented.csv"

    scores = augment(candidates, scorer, output, batch_size=1)

    pairs = read_scored([output])
    expected = scorer.predict(list(candidates.pairs), batch_size=1)
    assert tuple((pair.text1, pair.text2) for pair in pairs) == candidates.pairs
    assert [pair.score for pair in pairs] == pytest.approx(expected.tolist(), abs=1e-5)
    assert np.ptp(expected) > 0.1
    assert scores == [pair.score for pair in pairs]
    middle = sum(2 <= 5 * score < 3 for score in scores)
    assert f"{len(pairs)} scored\nscores 0 to 1: " in candidates.describe(scores)
    assert f", 2 to 3: {middle}, " in candidates.describe(scores)
    assert [path.name for path in output.parent.iterdir()] == [output.name]


class Stops:
    """A cross-encoder that is interrupted in a block, and counts those that it scores."""

    def __init__(self, scorer, monkeypatch, after=None):
        self.calls = 0
        predict = scorer.predict

        def counted(*args, **options):
            if self.calls == after:
                raise KeyboardInterrupt
            self.calls += 1
            return predict(*args, **options)

        monkeypatch.setattr(scorer, "predict", counted)


@pytest.mark.parametrize("after", [0, 3])
def test_an_interrupted_call_goes_on_and_gives_the_same_file(candidates, scorer, tmp_path, monkeypatch, after):
    monkeypatch.setattr(job, "BLOCK", 10)
    output = tmp_path / "cut-en.csv"
    blocks = -(-len(candidates.pairs) // 10)
    assert blocks > 3
    augment(candidates, scorer, tmp_path / "whole-en.csv")

    with monkeypatch.context() as patch:
        Stops(scorer, patch, after)
        with pytest.raises(Interrupted, match=f"run the same command to continue after the {10 * after} pairs in "):
            augment(candidates, scorer, output)
    assert not output.exists()
    if after:  # a kill may tear the last line
        (partial,) = tmp_path.glob("cut-en.csv.*.partial")
        with partial.open("a") as file:
            file.write("[0.5, 0.")

    with monkeypatch.context() as patch:
        again = Stops(scorer, patch)
        augment(candidates, scorer, output)
    assert again.calls == blocks - after
    assert output.read_bytes() == (tmp_path / "whole-en.csv").read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_blocks_of_another_cross_encoder_or_of_other_candidates_are_not_used(
    candidates, encoder, scorer, tmp_path, monkeypatch
):
    monkeypatch.setattr(job, "BLOCK", 10)
    output = tmp_path / "cut-en.csv"
    with monkeypatch.context() as patch:
        Stops(scorer, patch, after=1)
        with pytest.raises(Interrupted):
            augment(candidates, scorer, output)
    other = load_cross_encoder(str(folder_of(tmp_path / "other", seed=1)))
    fewer = find_candidates(encoder, PAIRS, top=3)
    for made, by in ((candidates, other), (fewer, scorer)):
        augment(made, by, output)
        expected = by.predict(list(made.pairs))
        assert [pair.score for pair in read_scored([output])] == pytest.approx(expected.tolist(), abs=1e-5)
        output.unlink()
