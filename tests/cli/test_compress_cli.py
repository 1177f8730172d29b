"""`metasearch compress` and `metasearch export`, and what a student's folder is good for."""

import gzip
import json

import numpy as np
import pytest

from helpers.backbones import make
from helpers.commands import metasearch
from metasearch.encoders.builtin import tiny
from metasearch.encoders.open import open_checkpoint


@pytest.fixture(scope="module")
def tiny_student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("students") / "tiny"
    arguments = ["--bottleneck", 16, "--recurrent", 1, "--repeats", 2, "-o", folder]
    return folder, metasearch("compress", "tiny", *arguments).stdout


@pytest.fixture(scope="module")
def assistant(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assistants") / "xlm-roberta"
    make("xlm-roberta").model.save_pretrained(str(folder), create_model_card=False)
    return folder


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_compress_prints_sizes_before_and_after_and_the_counting_rule(tiny_student):
    folder, printed = tiny_student
    lines = printed.splitlines()
    table = {row[0]: row[1:] for row in map(cells, lines[2 : lines.index("")])}
    words = open_checkpoint(str(folder)).model[0].auto_model.config.vocab_size
    assert table["words"][:2] == [f"{words * 128:,}", f"{words * 16:,}"]
    assert table["projection"][:2] == ["0", f"{16 * 128:,}"]
    assert table["whole model"][2:] == [
        f"{int(count.replace(',', '')) * size / 2**20:,.1f}" for size in (4, 2) for count in table["whole model"][:2]
    ]
    assert "other" not in table  # a row of nothing is left out
    assert lines[-3].startswith("Counting rule of the papers: embedding = words + projection + positions")
    assert lines[-1] == f"student: {folder}"


def test_a_bottleneck_is_best_for_the_words_that_texts_have(tmp_path):
    text = tmp_path / "texts.txt"
    text.write_text("the cat sat on the mat\n")
    plain, weighed = tmp_path / "plain", tmp_path / "weighed"
    metasearch("compress", "tiny", "--bottleneck", 4, "-o", plain)
    metasearch("compress", "tiny", "--bottleneck", 4, "--texts", text, "-o", weighed)
    whole = tiny.build()
    ids = whole.features(["the cat sat on the mat"], "text")["input_ids"][0]
    rows = whole.model[0].auto_model.get_input_embeddings().weight[ids]
    students = (open_checkpoint(str(folder)).model[0].auto_model for folder in (plain, weighed))
    of_plain, of_weighed = (
        (student.get_input_embeddings().multiplied_out()[ids] - rows).norm() for student in students
    )
    assert of_weighed < of_plain


@pytest.mark.slow
def test_trimming_keeps_the_words_of_the_texts_and_their_vectors(assistant, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.tsv").write_text("Where is the key?\tΠού είναι το κλειδί;\n", encoding="utf-8")
    with gzip.open(corpus / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("The key is here.\n")
    arguments = ["compress", assistant, "--trim-vocab", corpus, "--json"]
    printed = json.loads(metasearch(*arguments, "-o", tmp_path / "small").stdout)
    assert printed["after"]["words"] < printed["before"]["words"]
    assert printed["after"]["encoder: layers"] == printed["before"]["encoder: layers"]
    texts = ["Where is the key?", "Πού είναι το κλειδί;", "The key is here."]
    small, whole = (open_checkpoint(str(folder)) for folder in (tmp_path / "small", assistant))
    np.testing.assert_allclose(small.encode(texts, "text"), whole.encode(texts, "text"), atol=1e-6)
    words = printed["after"]["words"] // 16
    fewer = json.loads(metasearch(*arguments, "--vocabulary", words - 2, "--sizes-only").stdout)
    assert words - 10 <= fewer["after"]["words"] / 16 <= words - 2
    too_few = metasearch(*arguments, "--vocabulary", 5, "--sizes-only", code=2)
    assert "vocabulary 5: special tokens and the characters of the texts are" in too_few.stderr
    both = json.loads(metasearch(*arguments, "--bottleneck", 4, "--sizes-only").stdout)
    assert both["after"]["words"] * 16 == printed["after"]["words"] * 4


@pytest.mark.parametrize("command", [["compress", "--bottleneck", 4], ["export", "--sentence-transformers"]])
def test_a_folder_with_files_in_it_is_kept(assistant, tmp_path, command):
    (tmp_path / "mine.txt").write_text("keep")
    assert (
        "exists already; choose another folder with -o"
        in metasearch(command[0], assistant, *command[1:], "-o", tmp_path, code=5).stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
