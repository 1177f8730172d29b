"""Translations by a model of CTranslate2: a tiny one that was taught two sentences, and folders that hold none."""

import json
import shutil
from importlib.util import find_spec

import pytest

from metasearch.data.translators.base import Places
from metasearch.data.translators.ctranslate2 import CTranslate2
from metasearch.errors import DataError

needs_ctranslate2 = pytest.mark.skipif(
    not all(map(find_spec, ("ctranslate2", "sentencepiece"))),
    reason="the extra translate is not installed: pip install ctranslate2 sentencepiece",
)
TAUGHT = {"where is the key": "wo ist der key", "bread is in the oven": "bread ist im oven"}


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """A tiny Marian model that was taught two translations, in CTranslate2's form with its SentencePiece models."""
    import ctranslate2
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = tmp_path_factory.mktemp("marian")
    texts = [*TAUGHT, *TAUGHT.values()] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(folder / "source"), vocab_size=60, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    for side in ("source", "target"):
        shutil.copy(folder / "source.model", folder / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    words = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    # As in OPUS-MT's: without <s>, and with the padding last.
    known = dict.fromkeys(["</s>", "<unk>", *(word for word in words if word != "<s>"), "<pad>"])
    vocabulary = {word: i for i, word in enumerate(known)}
    padding = vocabulary["<pad>"]
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    torch.manual_seed(0)
    sizes = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 1), ("ffn_dim", 32))}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary), d_model=32, max_position_embeddings=64, pad_token_id=padding, eos_token_id=0,
            decoder_start_token_id=padding, forced_eos_token_id=0, dropout=0.0, **sizes, **heads,
        )
    )  # fmt: skip
    batch = tokenizer(list(TAUGHT), text_target=list(TAUGHT.values()), return_tensors="pt", padding=True)
    batch["labels"][batch["labels"] == padding] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.save_pretrained(folder / "hf")
    tokenizer.save_pretrained(folder / "hf")
    made = ctranslate2.converters.TransformersConverter(str(folder / "hf"), copy_files=["source.spm", "target.spm"])
    made.convert(str(folder / "ct2"))
    return folder


def ctranslate(folder, **options):
    return CTranslate2(CTranslate2.Options(**{"model": "ct2", "longest": 60, **options}), Places(folder, folder))


@pytest.mark.slow
@needs_ctranslate2
def test_a_model_of_ctranslate2_gives_what_it_was_taught(marian):
    made = ctranslate(marian)
    assert made.translate(list(TAUGHT), "en", "de") == list(TAUGHT.values())
    assert made.translate(list(TAUGHT)[1:], "en", "de") == list(TAUGHT.values())[1:]
    # Tokens that every translation begins with are left out of it.
    first = ctranslate(marian, prefix=("▁",), beam=1).translate(["where is the key"], "en", "de")
    assert not first[0].startswith(" ")


@pytest.mark.slow
@needs_ctranslate2
def test_a_translation_without_an_end_is_not_cut(marian):
    with pytest.raises(DataError, match=r"does not end within 3 tokens; raise options\.longest"):
        ctranslate(marian, longest=3).translate(["where is the key"], "en", "de")


@pytest.mark.slow
@needs_ctranslate2
def test_a_folder_without_a_tokenizer_or_with_a_damaged_model(marian, tmp_path):
    shutil.copytree(marian / "ct2", tmp_path / "ct2")
    for side in ("source", "target"):
        (tmp_path / f"ct2/{side}.spm").unlink()
    with pytest.raises(DataError, match=r"no tokenizer; expected source\.spm and target\.spm"):
        ctranslate(tmp_path).translate(["a"], "en", "de")
    (tmp_path / "ct2/model.bin").write_bytes(b"no model")
    with pytest.raises(DataError, match="the model cannot be loaded"):
        ctranslate(tmp_path).translate(["a"], "en", "de")
