"""`metasearch compress` and `metasearch export`, and what a student's folder is good for."""

import gzip
import json

import numpy as np
import pytest

from helpers.backbones import make
from helpers.commands import metasearch
from metasearch.encoders.builtin import tiny
from metasearch.encoders.open import open_checkpoint


def test_compress_prints_sizes_before_and_after_and_the_counting_rule(tmp_path):
    folder = tmp_path / "tiny"
    arguments = ["--bottleneck", 16, "--recurrent", 1, "--repeats", 2, "-o", folder]
    lines = metasearch("compress", "tiny", *arguments).stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2 : lines.index("")]]
    table = {head: values for head, *values in rows}
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
def test_trimming_keeps_the_words_of_the_texts_and_their_vectors(tmp_path):
    assistant, corpus = tmp_path / "xlm-roberta", tmp_path / "corpus"
    make("xlm-roberta").model.save_pretrained(str(assistant), create_model_card=False)
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
