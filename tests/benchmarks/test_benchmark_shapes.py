"""The shapes that the benchmark of the engine measures on are those that it says."""

from dataclasses import replace

import pytest

from metasearch.compress.vocabulary import train_tokenizer
from metasearch.jobs.compose import resolved
from metasearch.spec.library import load_recipe


def test_a_spread_vocabulary_cuts_texts_into_the_same_pieces(module):
    texts = ["the key opens the door", "the door is open", "where is the key?"]
    small = train_tokenizer(texts, 295, "bpe")
    large = module("_shapes").spread(small, 5000)
    for text in [*texts, "élan 🗝️"]:
        before, after = small(text)["input_ids"], large(text)["input_ids"]
        assert small.convert_ids_to_tokens(before) == large.convert_ids_to_tokens(after)
    used = [large.convert_tokens_to_ids(piece) for piece in small.get_vocab()]
    assert len(set(used)) == len(small) == 295
    assert max(used) > 4000
    assert len(large) == 5000
    assert [large.convert_tokens_to_ids(name) for name in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]
    assert large.pad_token_id == 1


def test_a_shape_of_one_language_draws_episodes_in_it_alone(module, setting):
    for learner, sets in (("maml", 2), ("maml-align", 3)):
        batch, _ = setting(learner, "B-de").episodes()
        assert {str(episode.arrangement) for episode in batch} == {" -> ".join(["de_de"] * sets)}
        assert {len(episode.sets) for episode in batch} == {sets}
        languages = {c.language for e in batch for s in e.sets for t in s.examples for c in (t.question, t.positive)}
        assert languages == {"de"}


def test_a_shape_out_of_reach_of_the_peers_is_measured_alone(module, setting, tmp_path):
    session = module("_cases").Session("small", "XLMR", 1, 1, None, tmp_path)
    assert list(session.jobs(setting("maml"), ("fast", "learn2learn"))) == ["fast"]
    session = module("_cases").Session("small", "A1", 1, 1, None, tmp_path, ways=["authors"])
    assert list(session.jobs(setting("maml"), ("fast", "learn2learn", "authors"))) == ["fast", "authors"]


@pytest.mark.parametrize("learner", ["maml", "maml-align"])
def test_the_full_scale_has_the_papers_shapes(module, learner):
    recipe = resolved(load_recipe(learner))
    full = module("_shapes").SCALES["full"]
    assert full.assignments == ()
    assert (recipe.episodes.k, recipe.episodes.q, recipe.episodes.n_neg) == (8, 4, 3)
    assert (recipe.options["inner_steps"], recipe.budget.meta_batch, full.batch) == (5, 4, 4)
    assert replace(full.shapes["A1"].encoder, learned=0) == module("_shapes").Random(250_002, 0, 128, 3, 4)
