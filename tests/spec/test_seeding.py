"""Random streams are named, and plug-ins are found by name."""

import os
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.errors import ConfigError, nearest
from metasearch.spec import registry
from metasearch.spec.seeding import seed_of, stream

seeds = st.integers(0, 2**32)
names = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5) | st.integers(0, 99), max_size=3)


@given(seeds, names)
def test_a_stream_is_a_function_of_its_seed_and_names(seed, path):
    first, again = stream(seed, *path), stream(seed, *path)
    assert first.integers(2**32, size=4).tolist() == again.integers(2**32, size=4).tolist()


@given(seeds, names)
def test_a_seed_is_a_whole_number_of_63_bits(seed, path):
    assert 0 <= seed_of(seed, *path) < 2**63


def test_streams_do_not_depend_on_the_order_in_which_they_are_used():
    forwards = {i: stream(7, "meta-train", i).random() for i in range(20)}
    backwards = {i: stream(7, "meta-train", i).random() for i in reversed(range(20))}
    assert forwards == backwards


def test_streams_of_other_seeds_phases_and_numbers_are_others():
    found = {seed_of(s, phase, i) for s, phase, i in product(range(5), ("meta-train", "meta-valid"), range(100))}
    assert len(found) == 5 * 2 * 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, "ab"), (1, "a", "b")),
        ((1, 2), (12,)),
        ((1, "2", 3), (1, 23)),
        ((1,), (1, "")),
        ((1, "a", "b"), (1, "b", "a")),
    ],
)
def test_names_do_not_run_together(one, other):
    assert seed_of(*one) != seed_of(*other)


def test_streams_are_the_same_in_every_process_and_whatever_the_hash_seed_is():
    code = "from metasearch.spec.seeding import *; print(seed_of(3, 'meta-train', 17), stream(3, 'folds').random())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert found == {f"{seed_of(3, 'meta-train', 17)} {stream(3, 'folds').random()}\n"}


def test_streams_of_neighbouring_numbers_are_unrelated():
    """The mean of a thousand first draws is within four standard errors of 1/2."""
    first = [stream(0, "meta-train", i).random() for i in range(1000)]
    standard_error = (1 / 12 / 1000) ** 0.5
    assert abs(sum(first) / 1000 - 1 / 2) < 4 * standard_error


READERS = ["csv", "jsonl", "semeval2017", "stsb-multi-mt", "xquad-r"]


def test_readers_are_named_by_their_files_with_dashes():
    assert set(READERS) <= set(registry.names("readers"))


def test_the_papers_learners_are_named_by_their_files():
    assert {"fine-tune", "maml", "maml-align"} <= set(registry.names("learners"))


@pytest.mark.parametrize("kind", registry.KINDS)
def test_base_and_private_modules_are_no_plug_ins(kind):
    found = registry.names(kind)
    assert found == sorted(found)
    assert not [name for name in found if name == "base" or name.startswith(("_", "-")) or "_" in name]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_loaded_by_name_and_keeps_the_contract(name):
    module = registry.load("readers", name)
    assert callable(module.read)
    assert callable(module.files)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_plug_in_says_what_it_is_in_one_line(kind):
    for name in registry.names(kind):
        assert len(registry.summary(kind, name)) > 10


@pytest.mark.parametrize("name", ["xquad", "xquad_r", "XQUAD-R"])
def test_an_unknown_reader_is_refused_with_the_nearest_one(name):
    with pytest.raises(ConfigError, match=rf"^unknown reader '{name}'\."):
        registry.load("readers", name)


@pytest.mark.parametrize("find", [registry.load, registry.require])
@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("readers", "semeval2018", "semeval2017"),
        ("learners", "maml-aling", "maml-align"),
        ("encoders", "tinu", "tiny"),
    ],
)
def test_an_unknown_plug_in_is_refused_with_the_nearest_one(find, kind, wrong, right):
    message = rf"^unknown {kind.removesuffix('s')} '{wrong}'\. Did you mean '{right}'\? Known: .*{right}"
    with pytest.raises(ConfigError, match=message):
        find(kind, wrong)


@pytest.mark.parametrize("name", ["base", "_rows", "__init__", "../library", ""])
def test_what_is_no_plug_in_is_not_loaded(name):
    with pytest.raises(ConfigError, match=f"^unknown reader '{name}'"):
        registry.load("readers", name)


def test_listing_and_summaries_import_no_plug_in():
    code = (
        "import sys; from metasearch.spec import registry\n"
        "for kind in registry.KINDS: [registry.summary(kind, name) for name in registry.names(kind)]\n"
        "print([name for name in sys.modules if name.startswith(('metasearch.', 'torch'))])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "['metasearch.spec', 'metasearch.errors', 'metasearch.spec.registry']\n"


@pytest.mark.parametrize(
    ("name", "choices", "hint"),
    [
        ("mamll", ["maml", "reptile"], " Did you mean 'maml'? Known: maml, reptile."),
        ("zzz", ["reptile", "maml"], " Known: maml, reptile."),
        ("maml", [], " Known: none."),
    ],
)
def test_the_nearest_name_is_named_and_all_of_them(name, choices, hint):
    assert nearest(name, choices) == hint
