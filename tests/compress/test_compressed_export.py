"""What a compressed encoder computes is what a stock model of every kind computes, unrolled and multiplied out."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from helpers.backbones import LAYERS, TEXTS, make
from metasearch.compress.standard import is_compressed, plain
from metasearch.compress.student import make_student
from metasearch.config.compress import Form
from metasearch.pipelines.export import export

PLAIN = Form(plain=True)
PLANS = {"bottleneck": (5, None, None), "recurrent": (None, 3, None), "both": (4, 2, None), "truncated": (4, 3, 1)}
PLACES = [("bottleneck", "bert"), ("recurrent", "xlm-roberta"), ("both", "electra-narrow"), ("both", "mpnet")]
PLACES += [("truncated", "bert"), ("truncated", "modernbert")]


def outputs(encoder, kind="sentence"):
    with torch.no_grad():
        return encoder.embedder(encoder.features(TEXTS, "text"), kind)


def hidden_states(encoder):
    with torch.no_grad():
        return encoder.model[0].auto_model(**encoder.features(TEXTS, "text"), output_hidden_states=True).hidden_states


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "kind"), PLACES)
def test_the_stock_model_computes_the_same(kind, plan):
    student = make_student(make(kind), *PLANS[plan])
    stock = plain(student)
    assert is_compressed(student)
    assert type(stock.model[0].auto_model).__module__.startswith("transformers.models.")
    # The rows of the stock model's table are those of the student's module to the bit. The sums within a row may be
    # taken in another order for a batch of another size, so the two models are the same to the bit given one table.
    shared = copy.deepcopy(student)
    shared.model[0].auto_model.set_input_embeddings(stock.model[0].auto_model.get_input_embeddings())
    assert torch.equal(outputs(shared), outputs(stock))
    assert all(map(torch.equal, hidden_states(shared), hidden_states(stock)))
    torch.testing.assert_close(outputs(student), outputs(stock), rtol=0, atol=1e-6)
    for encoder in (student, stock):
        encoder.embedder.double()
    torch.testing.assert_close(outputs(student), outputs(plain(student)), rtol=0, atol=1e-13)
    assert len(hidden_states(student)) == (4 if plan == "truncated" else LAYERS + 1)


ELSEWHERE = """
import json, os, sys
os.environ["HF_HOME"] = os.getcwd()
from sentence_transformers import SentenceTransformer

student, stock, texts = json.loads(sys.argv[1])
try:
    SentenceTransformer(student, device="cpu")
except Exception as error:
    refused = str(error)
model = SentenceTransformer(stock, device="cpu")
vectors = model.encode(texts).tolist()
without = not [name for name in sys.modules if name.startswith("metasearch")]
again = SentenceTransformer(student, device="cpu", trust_remote_code=True).encode(texts).tolist()
print(json.dumps([refused, without, vectors, again, model.max_seq_length, model.prompts]))
"""


@pytest.mark.slow
def test_plain_sentence_transformers_loads_an_export_and_where_metasearch_is_installed_a_student(tmp_path):
    student = make_student(make("xlm-roberta", dense=True), 4, 3)
    student.model.save_pretrained(str(tmp_path / "student"), create_model_card=False)
    export(student, PLAIN, tmp_path / "stock")
    argument = json.dumps([str(tmp_path / "student"), str(tmp_path / "stock"), TEXTS])
    command = [sys.executable, "-c", ELSEWHERE, argument]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "LOAD REPORT" not in result.stderr
    refused, without, vectors, again, longest, prompts = json.loads(result.stdout.splitlines()[-1])
    assert "trust_remote_code" in refused
    assert without
    assert (longest, prompts) == (student.model.max_seq_length, student.model.prompts)
    expected = student.model.encode(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_allclose(again, expected, atol=1e-6)
