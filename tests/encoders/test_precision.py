"""Encoding in bfloat16 and int8: the arithmetic of a layer, what a vector depends on, and what is not converted."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from helpers.backbones import OTHERS, make
from metasearch.encoders import cpu_rates as rates
from metasearch.encoders.cpu_rates import cpu_rates
from metasearch.encoders.load import load_encoder
from metasearch.encoders.low.attention import Attention
from metasearch.encoders.low.base import CLOSE
from metasearch.encoders.low.layers import Bfloat16Linear, Int8Linear, round_by_token
from metasearch.errors import ConfigError, EncoderError
from metasearch.search.indexes import index_documents, open_searcher

TEXTS = ["Where is the key?", "Der Schlüssel liegt unter der Matte.", "Wo?", "Ask the neighbours " * 9, "¿Dónde está?"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("METASEARCH_CACHE", str(tmp_path / "cache"))


needs_int8 = pytest.mark.skipif(not rates.measure()["int8"], reason="this CPU has no exact int8 products")
LOW = ["bfloat16", pytest.param("int8", marks=needs_int8)]


def test_each_token_is_rounded_by_its_own_step():
    # max|x| / 127 is 0.5 and 2; 1.2 / 0.5 = 2.4 and -1.3 / 0.5 = -2.6.
    inputs = torch.tensor([[63.5, 1.2, -1.3, 0.0], [-254.0, 3.0, 5.0, 100.0]])
    integers, steps = round_by_token(inputs)
    assert steps.flatten().tolist() == [0.5, 2.0]
    assert (integers.int() - 128).tolist() == [[127, 2, -3, 0], [-127, 2, 2, 50]]  # 1.5 and 2.5 to the even number
    assert (round_by_token(torch.zeros(1, 4))[0] == 128).all()


@needs_int8
def test_an_int8_layer_sums_products_of_integers():
    torch.manual_seed(0)
    layer, inputs = nn.Linear(48, 32), torch.randn(5, 48)
    found = Int8Linear(layer, torch.float32, round_by_token)(inputs)
    integers, steps = round_by_token(inputs)
    rows = layer.weight.detach().double().abs().amax(1, keepdim=True) / 127
    weights = (layer.weight.detach().double() / rows).round()
    exact = steps.double() * ((integers.double() - 128) @ weights.T) * rows.T + layer.bias.detach().double()
    # float32 rounds four times.
    torch.testing.assert_close(found.double(), exact, rtol=4 * 2**-23, atol=1e-6)
    assert (found - layer(inputs)).abs().max() < 0.02


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
    found = Attention(lengths, heads, torch.float32, len(joined))(joined)
    # (N, 3, heads, d)
    parts = joined.unflatten(1, (3, heads, width)).split([*lengths, 5])
    for text, part in list(zip(found.split([*lengths, 5]), parts, strict=True))[:-1]:
        query, key, value = part.permute(1, 2, 0, 3)
        expected = torch.softmax(query @ key.mT, -1) @ value
        torch.testing.assert_close(text, expected.transpose(0, 1).flatten(1))
    joined[: sum(lengths[:3])] = torch.nan
    assert torch.equal(Attention(lengths, heads, torch.float32, len(joined))(joined)[20:-5], found[20:-5])


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "least"), [("bfloat16", 0.9995), pytest.param("int8", 0.96, marks=needs_int8)])
def test_a_vector_never_depends_on_its_batch(precision, least):
    encoder = load_encoder("mini-e5", device="cpu")
    exact = encoder.encode(TEXTS, "candidate")
    together = encoder.choose_precision(precision).encode(TEXTS, "candidate")
    assert encoder.precision == precision
    assert least < (together * exact).sum(1).min() < 1 - 1e-7
    alone = np.concatenate([encoder.encode([text], "candidate") for text in TEXTS])
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


@pytest.mark.parametrize("precision", LOW)
@pytest.mark.parametrize("kind", OTHERS)
def test_transformers_whose_attention_has_more_than_a_softmax_stay_in_float32(kind, precision, caplog):
    encoder = make(kind)
    library = SentenceTransformer(modules=list(encoder.model), device="cpu")
    library.max_seq_length = encoder.limit("text")
    expected = library.encode(TEXTS)
    found = encoder.choose_precision(precision).encode(TEXTS, "text")
    assert encoder.precision == "float32"
    assert f"{kind}: encodes in float32, not {precision}: '{kind}' has other vectors in one row" in caplog.text
    np.testing.assert_allclose(found, expected, atol=1e-5)
    encoder.choose_precision(precision, tried=True)  # as of an index that an earlier release made
    with pytest.raises(EncoderError, match=f"an index with vectors in {precision} has to be made again"):
        encoder.encode(TEXTS, "text")


@pytest.mark.parametrize("precision", LOW)
def test_changed_weights_change_vectors(precision):
    encoder = load_encoder("tiny", device="cpu", precision=precision)
    before = encoder.encode(TEXTS, "candidate")
    with torch.no_grad():
        for weight in encoder.embedder.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    fresh = load_encoder("tiny", device="cpu")
    fresh.embedder.load_state_dict(encoder.embedder.state_dict())
    now = encoder.encode(TEXTS, "candidate")
    assert np.array_equal(now, fresh.choose_precision(precision).encode(TEXTS, "candidate"))
    assert np.abs(now - before).max() > 0.01


def test_what_cannot_be_converted_stays_in_float32_and_a_line_says_so(caplog, monkeypatch):
    encoder = load_encoder("tiny", device="cpu")
    monkeypatch.setitem(CLOSE, "bfloat16", 1.1)  # no cosine is so high
    assert encoder.choose_precision("bfloat16").precision == "float32"
    assert "tiny: encodes in float32, not bfloat16" in caplog.text
    assert load_encoder("tiny", device="cpu", precision="auto").precision == "float32"  # which is fast anyway


def test_a_cpu_without_exact_products_refuses_int8(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "metasearch.encoders.cpu_rates.cpu_rates", lambda: {"float32": 90.0, "bfloat16": 40.0, "int8": 0.0}
    )
    with pytest.raises(ConfigError, match="--precision int8: this CPU"):
        load_encoder("tiny", device="cpu", precision="int8")
    (tmp_path / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    index_documents([tmp_path / "a.txt"], tmp_path / "index", "tiny", device="cpu")
    with pytest.raises(ConfigError, match=r"^--precision int8: this CPU"):  # another encoder would not help
        open_searcher(tmp_path / "index", "cpu", precision="int8")


def test_three_processes_measure_rates_and_the_highest_are_kept(monkeypatch, tmp_path):
    cpu_rates.cache_clear()
    found = cpu_rates()
    (kept,) = (tmp_path / "cache").glob("cpu-*.json")
    assert found.keys() == {"float32", "bfloat16", "int8"}
    # As an earlier release left it, which measured once.
    kept.write_text('{"float32": 100, "bfloat16": 90, "int8": 0.4}', encoding="ascii")
    for measured in ((80, 121, 90), (90, 80, 100), (1000, 1000, 1000)):
        monkeypatch.setattr(rates, "measure", lambda each=measured: dict(zip(found, each, strict=True)))
        cpu_rates.cache_clear()
        assert rates.fastest() == "bfloat16"  # 121 > 1.2 · 100
    assert cpu_rates() == {"float32": 100, "bfloat16": 121, "int8": 100}
    for damaged in ("{", "[]", '{"float32": 100}', '{"float32": null, "bfloat16": 1, "int8": 0}'):
        kept.write_text(damaged, encoding="ascii")
        monkeypatch.setattr(rates, "measure", lambda: dict(found))
        cpu_rates.cache_clear()
        assert cpu_rates() == found
    cpu_rates.cache_clear()


@pytest.mark.parametrize("paused", [1, 2, 4])
def test_a_pause_in_one_product_changes_no_rate(paused, monkeypatch):
    seconds = []

    def product(rows):
        seconds.append(rows * 1e-6 + 0.03 * (len(seconds) == paused))

    def repeat(run, number, repeat):
        return [(run(), seconds[-1])[1] for _ in range(repeat)]

    monkeypatch.setattr(rates.timeit, "repeat", repeat)
    assert rates._rate(product) == round(2e-9 * 384 * 1536 / 1e-6, 1)  # a microsecond a row


@needs_int8
def test_an_index_keeps_its_precision_and_refuses_another(tmp_path, monkeypatch):
    folder, index = tmp_path / "docs", tmp_path / "index"
    folder.mkdir()
    (folder / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    made = index_documents([folder], index, "tiny", {"precision": "int8"}, device="cpu")
    assert asdict(made)["precision"] == "int8"
    (folder / "b.txt").write_text("Ask the neighbours.", encoding="utf-8")
    assert index_documents([folder], index, device="cpu").precision == "int8"
    with monkeypatch.context() as patch:  # nothing is converted where nothing is encoded
        patch.delattr("metasearch.encoders.low.bert.LowBert")
        assert index_documents([folder], index, asked={"precision": "auto"}, device="cpu").encoded == 0
    for other in ("float32", "bfloat16"):
        with pytest.raises(ConfigError, match=f'it was made with precision "int8", not "{other}"'):
            index_documents([folder], index, asked={"precision": other}, device="cpu")
    searcher = open_searcher(index, "cpu")
    assert searcher.encoder.precision == "int8"
    exact = open_searcher(index, "cpu", precision="float32")
    assert exact.encoder.precision == "float32"
    near = [each.search(["Where is the key?"])[0][0].score for each in (searcher, exact)]
    assert near[0] == pytest.approx(near[1], abs=0.02)


@pytest.mark.parametrize("fast", ["bfloat16", "float32"])
def test_queries_are_in_bfloat16_as_the_passages_are_where_this_machine_is_fast_in_it(tmp_path, monkeypatch, fast):
    (tmp_path / "a.txt").write_text("The key is under the mat.", encoding="utf-8")
    index_documents([tmp_path / "a.txt"], tmp_path / "index", "tiny", {"precision": "bfloat16"}, device="cpu")
    monkeypatch.setattr("metasearch.search.indexes.fastest", lambda: fast)
    assert open_searcher(tmp_path / "index", "cpu").encoder.precision == fast
