"""Encoding in bfloat16: the arithmetic of a layer, what a vector depends on, and what is not converted."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from helpers.backbones import OTHERS, make
from metasearch.encoders.device import fast_in_bfloat16
from metasearch.encoders.load import load_encoder
from metasearch.encoders.low.attention import Attention
from metasearch.encoders.low.bert import LowBert
from metasearch.encoders.low.layers import Bfloat16Linear
from metasearch.errors import ConfigError, EncoderError
from metasearch.search.indexes import index_documents, open_searcher

TEXTS = ["Where is the key?", "Der Schlüssel liegt unter der Matte.", "Wo?", "Ask the neighbours " * 9, "¿Dónde está?"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))


def test_a_bfloat16_layer_rounds_its_inputs_and_once_its_sums():
    torch.manual_seed(0)
    layer, inputs = nn.Linear(48, 32), torch.randn(5, 48)
    found = Bfloat16Linear(layer)(inputs)
    weights, bias = (each.detach().bfloat16().double() for each in (layer.weight, layer.bias))
    exact = inputs.bfloat16().double() @ weights.T + bias
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-5)


def test_each_text_of_a_row_attends_to_itself_alone_however_long_the_others_are():
    torch.manual_seed(0)
    lengths, heads, width = [1, 3, 16, 17, 18, 40], 2, 4
    joined = torch.randn(sum(lengths) + 5, 3 * heads * width)  # five rows without a text
    found = Attention(lengths, heads, len(joined), torch.float32)(joined)
    # (N, 3, heads, d)
    parts = joined.unflatten(1, (3, heads, width)).split([*lengths, 5])
    for text, part in list(zip(found.split([*lengths, 5]), parts, strict=True))[:-1]:
        query, key, value = part.permute(1, 2, 0, 3)
        expected = torch.softmax(query @ key.mT, -1) @ value
        torch.testing.assert_close(text, expected.transpose(0, 1).flatten(1))
    joined[: sum(lengths[:3])] = torch.nan
    assert torch.equal(Attention(lengths, heads, len(joined), torch.float32)(joined)[20:-5], found[20:-5])


@pytest.mark.slow
def test_a_vector_does_not_depend_on_its_batch_without_amx():
    encoder = load_encoder("mini-e5", device="cpu")
    exact = encoder.encode(TEXTS, "candidate")
    together = encoder.choose_precision("bfloat16").encode(TEXTS, "candidate")
    assert encoder.precision == "bfloat16"
    assert 0.9995 < (together * exact).sum(1).min() < 1 - 1e-7
    alone = np.concatenate([encoder.encode([text], "candidate") for text in TEXTS])
    if torch.cpu.get_capabilities().get("amx_tile"):  # oneDNN sums a row in another order among more of them
        assert (alone * together).sum(1).min() > 0.9999
        return
    assert np.array_equal(alone, together)
    assert np.array_equal(encoder.encode([*TEXTS[3:], "and another text", *TEXTS[:3]], "candidate")[-3:], together[:3])


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "distilbert", "electra-narrow", "modernbert"])
def test_transformers_of_all_kinds_are_converted(kind):
    encoder = make(kind)
    exact = encoder.encode(TEXTS, "candidate")
    together = encoder.choose_precision("bfloat16").encode(TEXTS, "candidate")
    assert encoder.precision == "bfloat16"
    assert 0.999 < (together * exact).sum(1).min() < 1 - 1e-7
    for text, expected in zip(TEXTS, together, strict=True):
        assert np.array_equal(encoder.encode([text], "candidate")[0], expected)


@pytest.mark.parametrize("kind", OTHERS)
def test_transformers_whose_attention_has_more_than_a_softmax_stay_in_float32(kind, caplog):
    encoder = make(kind)
    library = SentenceTransformer(modules=list(encoder.model), device="cpu")
    library.max_seq_length = encoder.limit("text")
    expected = library.encode(TEXTS)
    found = encoder.choose_precision("bfloat16").encode(TEXTS, "text")
    assert encoder.precision == "float32"
    assert f"{kind}: encodes in float32, not bfloat16: '{kind}' has other vectors in one row" in caplog.text
    np.testing.assert_allclose(found, expected, atol=1e-5)
    encoder.choose_precision("bfloat16", tried=True)  # as of an index that an earlier release made
    with pytest.raises(EncoderError, match="an index with vectors in bfloat16 has to be made again"):
        encoder.encode(TEXTS, "text")


def test_changed_weights_change_vectors():
    encoder = load_encoder("tiny", device="cpu", precision="bfloat16")
    before = encoder.encode(TEXTS, "candidate")
    with torch.no_grad():
        for weight in encoder.embedder.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    fresh = load_encoder("tiny", device="cpu")
    fresh.embedder.load_state_dict(encoder.embedder.state_dict())
    now = encoder.encode(TEXTS, "candidate")
    assert np.array_equal(now, fresh.choose_precision("bfloat16").encode(TEXTS, "candidate"))
    assert np.abs(now - before).max() > 0.01


def test_what_cannot_be_converted_stays_in_float32_and_a_line_says_so(caplog, monkeypatch):
    encoder = load_encoder("tiny", device="cpu")
    monkeypatch.setattr("metasearch.encoders.low.base.CLOSE", 1.1)  # no cosine is so high
    assert encoder.choose_precision("bfloat16").precision == "float32"
    assert "tiny: encodes in float32, not bfloat16" in caplog.text
    assert load_encoder("tiny", device="cpu", precision="auto").precision == "float32"  # which is fast anyway


def test_rounding_that_depends_on_the_batch_does_not_keep_an_encoder_in_float32(monkeypatch):
    # On CPUs with AMX, other texts of a batch change vectors of a fine-tuned `e5` by half a percent.
    rounded = LowBert.vectors

    def vectors(self, columns, rows, output):
        found = rounded(self, columns, rows, output)
        return found + 0.02 * found.roll(1, -1) * (len(rows) > 1)

    monkeypatch.setattr(LowBert, "vectors", vectors)
    assert load_encoder("tiny", device="cpu", precision="bfloat16").precision == "bfloat16"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("flags\t: avx512_bf16 amx_bf16", True),
        ("vendor_id\t: AuthenticAMD\nflags\t: avx512_bf16", True),
        ("vendor_id\t: GenuineIntel\nflags\t: avx512_bf16", False),
        ("Features : fp bf16", True),
        ("flags : avx2", False),
    ],
)
def test_auto_takes_bfloat16_on_a_cpu_that_is_faster_in_it(listed, expected, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: listed)
    fast_in_bfloat16.cache_clear()
    assert fast_in_bfloat16() is expected
    fast_in_bfloat16.cache_clear()


def test_an_index_keeps_its_precision_and_refuses_another(tmp_path, monkeypatch):
    folder, index = tmp_path / "docs", tmp_path / "index"
    folder.mkdir()
    (folder / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    made = index_documents([folder], index, "tiny", {"precision": "bfloat16"}, device="cpu")
    assert asdict(made)["precision"] == "bfloat16"
    (folder / "b.txt").write_text("Ask the neighbours.", encoding="utf-8")
    assert index_documents([folder], index, device="cpu").precision == "bfloat16"
    with monkeypatch.context() as patch:  # nothing is converted where nothing is encoded
        patch.delattr("metasearch.encoders.low.bert.LowBert")
        assert index_documents([folder], index, asked={"precision": "auto"}, device="cpu").encoded == 0
    with pytest.raises(ConfigError, match='it was made with precision "bfloat16", not "float32"'):
        index_documents([folder], index, asked={"precision": "float32"}, device="cpu")
    searcher = open_searcher(index, "cpu", precision="bfloat16")
    assert searcher.encoder.precision == "bfloat16"
    exact = open_searcher(index, "cpu", precision="float32")
    assert exact.encoder.precision == "float32"
    near = [each.search(["Where is the key?"])[0][0].score for each in (searcher, exact)]
    assert near[0] == pytest.approx(near[1], abs=0.02)


@pytest.mark.parametrize("fast", [True, False])
def test_queries_are_in_bfloat16_as_the_passages_are_where_this_machine_is_fast_in_it(tmp_path, monkeypatch, fast):
    (tmp_path / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    index_documents([tmp_path / "a.txt"], tmp_path / "index", "tiny", {"precision": "bfloat16"}, device="cpu")
    monkeypatch.setattr("metasearch.search.indexes.fast_in_bfloat16", lambda: fast)
    assert open_searcher(tmp_path / "index", "cpu").encoder.precision == ("bfloat16" if fast else "float32")
