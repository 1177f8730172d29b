"""Translators: files, and a program; what they give, what is kept of it, and how they fail."""

import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from metasearch.data.translate.train import AT_ONCE, translations
from metasearch.data.translators.base import Places
from metasearch.data.translators.command import Command
from metasearch.data.translators.files import Files
from metasearch.errors import DataError, EncoderError
from metasearch.io import cache_folder, fingerprint_of

UPPER = """\
import json, sys
print("reads", file=sys.stderr)
open("calls.txt", "a").write("x")
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"text": row["target"] + " " + row["text"].upper()}, ensure_ascii=False))
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder, and a cache of its own."""
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "task").mkdir()
    return tmp_path / "task"


def files_in(place, path="{source}-{target}.tsv", **contents):
    for name, content in contents.items():
        (place / name.replace("__", ".").replace("_", "-")).write_text(content, encoding="utf-8")
    return Files(Files.Options(path=path), Places(place, place))


def program(place, source=UPPER, **options):
    (place / "translate.py").write_text(source, encoding="utf-8")
    return Command(Command.Options(command=(sys.executable, "translate.py"), **options), Places(place, place))


def calls(place):
    path = place / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


def test_a_file_of_two_columns_and_files_aligned_by_rows(place):
    columns = files_in(place, en_de__tsv="a key\tein Schlüssel\n\nbread\tBrot\n")
    assert columns.translate(["bread", " a key "], "en", "de") == ["Brot", "ein Schlüssel"]
    aligned = files_in(
        place, "sts-{language}.csv", sts_en__csv='"a, key",bread,2.5\n', sts_de__csv='ein Schlüssel,"Brot ""1""",2.5\n'
    )
    assert aligned.translate(["a, key", "bread"], "en", "de") == ["ein Schlüssel", 'Brot "1"']
    gaps = files_in(place, "{language}.tsv", en__tsv="a\n\nbread\nx\n\n", de__tsv="a\nBrot\n\t\nx\n")
    with pytest.raises(DataError, match=r"de\.tsv:2: expected 0 columns, as in .*en\.tsv:2; got 1"):
        gaps.translate(["bread"], "en", "de")


cells = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\x00"), min_size=1).filter(str.strip)


@pytest.mark.slow
@given(st.lists(st.tuples(cells, cells), min_size=1, unique_by=lambda row: row[0].strip()))
def test_any_text_is_found_again_in_a_tsv_file(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("files")
    # What shows nothing, such as a lone joiner, is refused, and has a test of its own.
    shown = [row for row in rows if all(any(c.isalnum() for c in cell) for cell in row)]
    (folder / "en-de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in [("x0", "y0"), *shown]), encoding="utf-8")
    found = Files(Files.Options(), Places(folder, folder)).translate([a for a, _ in shown], "en", "de")
    first = dict([("x0", "y0"), *reversed([(a.strip(), b.strip()) for a, b in shown])])
    assert found == [first[a.strip()] if a.strip() != "x0" else "y0" for a, _ in shown]


@pytest.mark.parametrize("path", ["x.tsv", "{source}.tsv", "{language}.txt", "{source}-{target}"])
def test_a_path_that_names_no_languages_or_no_table_is_refused(path):
    with pytest.raises(ValidationError, match="expected"):
        Files.Options(path=path)


def test_a_program_translates_once_and_the_cache_gives_the_same_when_it_is_deleted(place, tmp_path):
    made = program(place)
    first = translations(made, ["a", "b", "a"], "en", "de")
    assert first == {"a": "de A", "b": "de B"}
    assert translations(program(place), ["b", "a"], "en", "de") == {"b": "de B", "a": "de A"}
    assert calls(place) == 1
    # Only what is new is asked for; another language has texts of its own.
    assert translations(made, ["a", "c"], "en", "de") == {"a": "de A", "c": "de C"}
    assert translations(made, ["a"], "en", "el") == {"a": "el A"}
    assert calls(place) == 3
    shutil.rmtree(tmp_path / "cache")
    assert translations(made, ["a", "b"], "en", "de") == first
    assert calls(place) == 4


def test_many_texts_are_sent_in_parts_each_of_which_is_kept(place):
    texts = [f"text {i}" for i in range(AT_ONCE + 1)]
    # The second call fails.
    failing = UPPER.replace('("x")', '("x")\nif len(open("calls.txt").read()) == 2: sys.exit("no more")')
    with pytest.raises(DataError, match="ended with code 1: no more"):
        translations(program(place, failing), texts, "en", "de")
    found = translations(program(place, failing), texts, "en", "de")
    assert found == {text: f"de {text.upper()}" for text in texts}
    assert calls(place) == 3


def test_a_program_in_the_folder_of_the_task_is_known_by_its_content(place):
    made = Command(Command.Options(command=("./translate.py",)), Places(place, place))
    prints = []
    for line in (f"#!{sys.executable}", f"#!{sys.executable} -I"):
        (place / "translate.py").write_text(f"{line}\n{UPPER}", encoding="utf-8")
        (place / "translate.py").chmod(0o700)
        prints.append(made.fingerprint("en", "de"))
        assert made.translate(["a"], "en", "de") == ["de A"]
    assert prints[0] != prints[1]
    # Named in full it is the same file; an interpreter that the folder links to is none of its own.
    (place / "python").symlink_to(sys.executable)
    words = ([str(place / "translate.py")], ["./python", "-c", "1"], [sys.executable, "-c", "1"])
    whole, linked, elsewhere = (Command(Command.Options(command=each), Places(place, place)) for each in words)
    before = whole.fingerprint("en", "de")
    (place / "translate.py").write_text("another", encoding="utf-8")
    assert whole.fingerprint("en", "de") != before
    for command in (linked, elsewhere):
        assert command.fingerprint("en", "de") == fingerprint_of(
            [["command", *command._options.command], ["", ""], [""]]
        )


def test_a_damaged_cache_is_an_error_that_names_it(place):
    translations(program(place), ["a"], "en", "de")
    (path,) = cache_folder().glob("*.sqlite")
    path.write_bytes(b"no database" * 100)
    with pytest.raises(EncoderError, match=rf"the cache .*{path.name} cannot be used: file is not a database; delete"):
        translations(program(place), ["a"], "en", "de")


def test_a_damaged_translation_is_made_again_with_a_warning(place, caplog):
    first = translations(program(place), ["a", "b"], "en", "de")
    (path,) = cache_folder().glob("*.sqlite")
    content = path.read_bytes()
    assert content.count(b"de A") == 1
    path.write_bytes(content.replace(b"de A", b"de X"))
    assert translations(program(place), ["a", "b"], "en", "de") == first
    assert f"{path}: checksum mismatch of 1 translations; they are not used" in caplog.messages
    assert calls(place) == 2


def test_translations_that_are_missing_name_the_file_and_the_nearest_one(tmp_path):
    (tmp_path / "en-zh_cn.tsv").write_text("one\tyi\n")
    expected = r"en-zh-CN\.tsv: the translations cannot be read: No such file .*\. Did you mean 'en-zh_cn\.tsv'\?$"
    with pytest.raises(DataError, match=expected):
        Files(Files.Options(), Places(tmp_path, tmp_path)).fingerprint("en", "zh-CN")


def test_a_program_that_takes_too_long_is_ended_with_what_it_began(place):
    # The child of the child holds the output open.
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    with pytest.raises(DataError, match=r"took more than 0.5 s; raise options\.timeout"):
        program(place, source, timeout=0.5).translate(["a"], "en", "de")
