"""`metasearch tokenizer` as a user runs it, and the texts that it reads."""

import gzip
import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

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


@pytest.mark.slow
def test_a_folder_of_texts_becomes_a_tokenizer_and_a_table(corpus, tmp_path):
    result = metasearch("tokenizer", corpus, "--size", 800, "--max-length", 64, "-o", tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    expected = train_tokenizer([*lines_of("de"), *table(corpus), *lines_of("en")], 800, max_length=64)
    assert tokenizer.get_vocab() == expected.get_vocab()
    assert tokenizer.model_max_length == 64
    assert result.stdout.endswith(f"\n\ntokenizer of 800 tokens: {tmp_path / 'out'}\n")
    cells = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]] for row in rows_of(result)}
    german = lines_of("de")
    tokens = sum(map(len, tokenizer(german, add_special_tokens=False)["input_ids"]))
    words = sum(len(line.split()) for line in german)
    characters = sum(len("".join(line.split())) for line in german)
    shown = cells[str(corpus / "de.txt")]
    assert shown[:3] == [f"{tokens:,}", f"{tokens / words:.2f}", f"{tokens / characters:.3f}"]
    assert set(cells) == {"file", *map(str, (corpus / name for name in ("de.txt", "en-el.tsv", "en.txt.gz")))}


def table(corpus):
    rows = (corpus / "en-el.tsv").read_text(encoding="utf-8").splitlines()
    return [text for row in rows for text in row.split("\t")[:2]]


def rows_of(result):
    return [line for line in result.stdout.splitlines() if line.startswith("| ") and "---" not in line]


@pytest.mark.slow
def test_an_encoder_is_written_with_its_new_vocabulary(corpus, tmp_path):
    initial = "random"
    args = ["--encoder", "tiny", "--init", initial, "--seed", 5, "-o", tmp_path / "out"]
    result = metasearch("tokenizer", corpus / "de.txt", "--size", 600, *args)
    assert result.stdout.endswith(f"encoder of 600 tokens: {tmp_path / 'out'}\n")
    expected = with_vocabulary(tiny.build(seed=5), train_tokenizer(lines_of("de"), 600), initial, 5)
    opened = SentenceTransformer(str(tmp_path / "out"), device="cpu", local_files_only=True)
    texts = lines_of("de")[:5]
    np.testing.assert_allclose(opened.encode(texts), expected.encode(texts, "text"), atol=1e-6)
