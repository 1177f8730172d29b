"""Damaged data is refused with a `DataError` that names the file, the line or key path, and what was expected."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.formats import FOLDER, FORMATS, copy, files, read
from metasearch.errors import DataError, MetasearchError

FILES = [(form, name) for form in FORMATS for name in files(form)]


def spoil(form, name, damage, tmp_path):
    """Copy a fixture, damage one of its files, and return what reading it says."""
    folder = copy(form, tmp_path)
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError) as caught:
        read(form, folder)
    return str(caught.value)


def swap(old, new):
    """Return a damage that puts one text in the place of another."""

    def damage(sound):
        text = sound.decode()
        assert old in text
        return text.replace(old, new, 1).encode()

    return damage


def test_files_of_different_length_are_refused_with_their_rows(tmp_path):
    shorter = swap("A child rides a horse.,A child swims.,1.2\n", "")
    message = spoil("stsb-multi-mt", "stsb-en-dev.csv", shorter, tmp_path)
    assert "stsb-en-dev.csv 1, stsb-de-dev.csv 2" in message


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("el.json", swap("52\n", "99\n")),
        ("el.json", swap("       0,", "       -5,")),
        ("el.json", swap("Ποια γεννά τα αυγά;", " ")),
        ("el.json", swap('"context": "Ο Νείλος ρέει προς τον βορρά. Εκβάλλει στη Μεσόγειο."', '"context": ""')),
    ],
    ids=["a break beyond the text", "a negative break", "an empty question", "no text at all"],
)
def test_xquad_r_refuses_spans_and_texts_that_hold_nothing(name, damage, tmp_path):
    message = spoil("xquad-r", name, damage, tmp_path)
    assert message.startswith(f"{tmp_path / 'xquad-r' / name}: data[")


def test_rows_without_ids_are_refused_where_languages_have_not_equally_many(tmp_path):
    """One that is missing would make each question behind it the translation of another."""
    message = spoil("jsonl-labelled", "de.jsonl", lambda sound: b"".join(sound.splitlines(True)[1:]), tmp_path)
    assert message.startswith(f"{tmp_path / 'jsonl-labelled' / 'el.jsonl'}:3: a question without an id is a transl")
    assert "in its place (3) in other languages, and de has none there" in message


@st.composite
def damaged(draw):
    """A fixture file and its bytes, with bytes turned over or put in and the end cut off."""
    form, name = draw(st.sampled_from(FILES))
    found = bytearray((FOLDER / form / name).read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(found)))
        found[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return form, name, bytes(found[: draw(st.integers(0, len(found)) | st.just(len(found)))])


@pytest.mark.slow
@given(damaged())
@settings(max_examples=300, deadline=None)
def test_no_damage_makes_a_reader_raise_anything_else(tmp_path_factory, case):
    form, name, found = case
    folder = copy(form, tmp_path_factory.mktemp("damaged"))
    (folder / name).write_bytes(found)
    with contextlib.suppress(MetasearchError):
        assert read(form, folder).groups
