"""Files with translations, and their errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from metasearch.config.task import Translate
from metasearch.data.translate import fingerprint_files, read_translations, translation_files
from metasearch.errors import DataError


def files_in(place, path="{source}-{target}.tsv", **contents):
    for name, content in contents.items():
        (place / name.replace("__", ".").replace("_", "-")).write_text(content, encoding="utf-8")
    return translation_files(Translate(source="en", into=("de",), options={"path": path}), place, "de")


def test_a_file_of_two_columns_and_files_aligned_by_rows(tmp_path):
    columns = files_in(tmp_path, en_de__tsv="a key\tein Schlüssel\n\nbread\tBrot\n")
    assert read_translations(columns, ["bread", " a key "]) == {"bread": "Brot", " a key ": "ein Schlüssel"}
    rows = {"sts_en__csv": '"a, key",bread,2.5\n', "sts_de__csv": 'ein Schlüssel,"Brot ""1""",2.5\n'}
    aligned = files_in(tmp_path, "sts-{language}.csv", **rows)
    assert read_translations(aligned, ["bread", "a, key"]) == {"bread": 'Brot "1"', "a, key": "ein Schlüssel"}
    gaps = files_in(tmp_path, "{language}.tsv", en__tsv="a\n\nbread\nx\n\n", de__tsv="a\nBrot\n\t\nx\n\n")
    with pytest.raises(DataError, match=r"de\.tsv:2: expected 0 columns, as in .*en\.tsv:2; got 1"):
        read_translations(gaps, ["bread"])


cells = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\x00"), min_size=1).filter(str.strip)


@pytest.mark.slow
@given(st.lists(st.tuples(cells, cells), min_size=1, unique_by=lambda row: row[0].strip()))
def test_any_text_is_found_again_in_a_tsv_file(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("files")
    # What shows nothing, such as a lone joiner, is refused, and has a test of its own.
    shown = [row for row in rows if all(any(c.isalnum() for c in cell) for cell in row)]
    (folder / "en-de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in [("x0", "y0"), *shown]), encoding="utf-8")
    found = read_translations(files_in(folder), [a for a, _ in shown])
    assert found == {a: b.strip() if a.strip() != "x0" else "y0" for a, b in shown}


@pytest.mark.parametrize("path", ["x.tsv", "{source}.tsv", "{language}.txt", "{source}-{target}"])
def test_a_path_that_names_no_languages_or_no_table_is_refused(path):
    with pytest.raises(ValidationError, match="expected"):
        Translate(source="en", into=("de",), options={"path": path})


def test_translations_that_are_missing_name_the_file_and_the_nearest_one(tmp_path):
    (tmp_path / "en-zh_cn.tsv").write_text("one\tyi\n")
    expected = r"en-zh-CN\.tsv: the translations cannot be read: No such file .*\. Did you mean 'en-zh_cn\.tsv'\?$"
    with pytest.raises(DataError, match=expected):
        fingerprint_files([tmp_path / "en-zh-CN.tsv"])
