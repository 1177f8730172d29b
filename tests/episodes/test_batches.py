"""Shuffled epochs of batches: nothing is lost, nothing depends on the past, and lengths are alike."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.seeding import stream
from metasearch.data.records import ScoredPair, Translation
from metasearch.episodes.batches import Batches, variant_of


def translations(count, languages=("de", "fr")):
    return [Translation(f"s{i}", f"t{i}", ("en", languages[i % len(languages)])) for i in range(count)]


def batches(count, size, seed=0, **options):
    lengths = options.pop("lengths", None)
    lengths = stream(0, "lengths").integers(3, 60, count) if lengths is None else lengths
    return Batches(translations(count), lengths, size, seed, **options)


def epoch(found, number):
    first = number * found.steps_per_epoch
    return [found.rows(first + i).tolist() for i in range(found.steps_per_epoch)]


def flat(rows):
    return [row for batch in rows for row in batch]


shapes = st.tuples(st.integers(1, 200), st.integers(1, 33), st.integers(1, 8))
# Sizes of the parts, such as the languages of a corpus.
portions = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@given(shapes, st.integers(0, 3))
def test_an_epoch_holds_every_example_once_in_full_batches_but_one(shape, number):
    count, size, bucket = shape
    found = batches(count, size, bucket=bucket)
    rows = epoch(found, number)
    assert sorted(flat(rows)) == list(range(count))
    assert found.steps_per_epoch == -(-count // size)
    assert sorted(map(len, rows), reverse=True)[: count // size] == [size] * (count // size)


@given(shapes, st.integers(0, 2**40))
def test_the_same_seed_gives_the_same_batches_in_any_order_of_access(shape, seed):
    count, size, bucket = shape
    steps = range(3 * batches(count, size).steps_per_epoch)
    one, two = (batches(count, size, seed, bucket=bucket) for _ in range(2))
    forward = {step: one.rows(step).tolist() for step in steps}
    assert {step: two.rows(step).tolist() for step in reversed(steps)} == forward
    middle = len(steps) // 2
    assert batches(count, size, seed, bucket=bucket).rows(middle).tolist() == forward[middle]


def test_epochs_seeds_and_names_give_other_batches():
    found = batches(300, 8)
    others = [epoch(found, 1), epoch(batches(300, 8, seed=1), 0), epoch(batches(300, 8, name="dev"), 0)]
    for i, rows in enumerate([*others, epoch(found, 0)]):
        for other in others[:i]:
            assert rows != other


def padded(rows, lengths):
    """Return the tokens of all batches, each text padded to the longest of its batch."""
    return sum(len(batch) * max(lengths[row] for row in batch) for batch in rows)


def test_batches_of_similar_length_save_padding():
    lengths = stream(1, "lengths").integers(5, 100, 6400)
    real = int(lengths.sum())
    unsorted = padded(epoch(batches(6400, 32, lengths=lengths, bucket=1), 0), lengths)
    by_length = padded(epoch(batches(6400, 32, lengths=lengths), 0), lengths)
    # The longest of 32 lengths from 5 to 99 is near 5 + 94 * 32 / 33 = 96, against 52 on average.
    assert unsorted > 1.75 * real
    # A stretch of 50 batches spans 94 lengths: a batch spans about 94 / 50 = 1.9 of them.
    assert by_length < 1.05 * real


@given(portions, st.integers(1, 16), st.integers(0, 4))
def test_balance_gives_every_part_the_same_number_of_examples(sizes, size, number):
    parts = np.repeat(np.arange(len(sizes)), sizes)
    found = batches(len(parts), size, parts=parts)
    quota = -(-sum(sizes) // len(sizes))
    drawn = Counter(parts[flat(epoch(found, number))].tolist())
    assert drawn == dict.fromkeys(range(len(sizes)), quota)
    assert found.steps_per_epoch == -(-quota * len(sizes) // size)


@given(portions, st.integers(1, 6))
def test_balance_goes_through_a_part_evenly_whatever_its_size(sizes, epochs):
    """After any number of epochs the examples of a part were taken equally often, to within one."""
    parts = np.repeat(np.arange(len(sizes)), sizes)
    found = batches(len(parts), 7, parts=parts)
    taken = Counter(row for number in range(epochs) for row in flat(epoch(found, number)))
    for part in range(len(sizes)):
        times = [taken[row] for row in np.flatnonzero(parts == part).tolist()]
        assert max(times) - min(times) <= 1


@given(portions, st.integers(1, 16), st.booleans(), st.data())
def test_the_examples_that_steps_visit_are_those_of_their_batches_each_once(sizes, size, balance, data):
    parts = np.repeat(np.arange(len(sizes)), sizes)
    found = batches(len(parts), size, parts=parts if balance else None)
    steps = data.draw(st.integers(1, 3 * found.steps_per_epoch))
    expected = {row for step in range(steps) for row in found.rows(step).tolist()}
    assert found.visited(steps).tolist() == sorted(expected)


def test_a_step_is_one_episode_of_one_set_in_the_languages_of_its_examples():
    found = batches(10, 4)
    (episode,) = found.batch(7, 16)
    (examples,) = episode.sets
    assert examples.examples == tuple(translations(10)[row] for row in found.rows(7))
    assert examples.variant == variant_of(examples.examples)
    assert episode.arrangement == Arrangement((examples.variant,))


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ([("en", "fr"), ("en", "de"), ("en", "fr")], Variant("en", ("de", "fr"))),
        ([("en", "en")], Variant("en", ("en",))),
        ([("en", "ar"), ("ar", "en")], Variant("ar", ("ar", "en"))),
    ],
)
def test_the_variant_of_a_batch_names_all_its_languages(languages, expected):
    assert variant_of([ScoredPair("-".join(codes), codes, "a", "b", 0.5, "row") for codes in languages]) == expected
    assert variant_of([Translation("a", "b", codes) for codes in languages]) == expected
