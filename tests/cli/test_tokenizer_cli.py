"""`metasearch tokenizer` as a user runs it, and the texts that it reads."""

import gzip
import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from helpers.commands import metasearch
from metasearch.compress.vocabulary import train_tokenizer, with_vocabulary
from metasearch.config.library import shipped
from metasearch.encoders.builtin import tiny


def lines_of(language):
    rows = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    return [text for row in rows for text in json.loads(row)["sentences"]]


@pytest.fixture
def corpus(tmp_path):
    """A folder with a plain text, a compressed one, and a table of two languages and a label."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "de.txt").write_text("\n".join(lines_of("de")) + "\n\n", encoding="utf-8")
    (folder / "en.txt.gz").write_bytes(gzip.compress("\n".join(lines_of("en")).encode()))
    rows = [f"{en}\t{el}\tlabel{i}" for i, (en, el) in enumerate(zip(lines_of("en"), lines_of("el"), strict=False))]
    (folder / "en-el.tsv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "notes.md").write_text("not a text")
    return folder


def table(corpus):
    rows = (corpus / "en-el.tsv").read_text(encoding="utf-8").splitlines()
    return [text for row in rows for text in row.split("\t")[:2]]


@pytest.mark.slow
def test_a_folder_of_texts_gives_an_encoder_its_vocabulary(corpus, tmp_path):
    args = ["--encoder", "tiny", "--seed", 5, "-o", tmp_path / "out"]
    result = metasearch("tokenizer", corpus, "--size", 800, *args)
    assert result.stdout == f"encoder with 800 tokens: {tmp_path / 'out'}\n"
    learned = train_tokenizer([*lines_of("de"), *table(corpus), *lines_of("en")], 800)
    expected = with_vocabulary(tiny.build(seed=5), learned, 5)
    opened = SentenceTransformer(str(tmp_path / "out"), device="cpu", local_files_only=True)
    texts = lines_of("de")[:5]
    assert opened.tokenizer.get_vocab() == learned.get_vocab()
    np.testing.assert_allclose(opened.encode(texts), expected.encode(texts, "text"), atol=1e-6)
