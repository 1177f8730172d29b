"""The `README.md` of a folder with an ONNX graph: what it is, how it is used, what it scores."""

from metasearch.encoders.lengths import UNLIMITED
from metasearch.export.facts import Facts

EXAMPLE = """import json
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

FOLDER = "{folder}"
facts = json.load(open(f"{{FOLDER}}/metasearch.json", encoding="utf-8"))
tokenizer = Tokenizer.from_file(f"{{FOLDER}}/tokenizer.json")
session = onnxruntime.InferenceSession(f"{{FOLDER}}/{{facts['model']}}")

def encode(texts, role):  # role: question, candidate or text
    tokenizer.enable_truncation(**{{**tokenizer.truncation, "max_length": facts["lengths"][role]}})
    rows = tokenizer.encode_batch([facts["prompts"][role] + text for text in texts])
    columns = {{"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}}
    read = [each.name for each in session.get_inputs()]
    inputs = {{name: np.array([getattr(row, columns[name]) for row in rows], np.int64) for name in read}}
    return session.run(None, inputs)[0]

answers = ["Der Schlüssel liegt unter der Matte.", "Το ψωμί ψήνεται στον φούρνο."]
print(encode(["Where is the key?"], "question") @ encode(answers, "candidate").T)
"""
"""What uses a folder by onnxruntime and tokenizers alone; `folder` is where it is."""


def card(facts: Facts, scores: str) -> str:
    """Return the text.

    Args:
        facts: what the folder says of itself.
        scores: tables of scores in Markdown; empty where nothing was scored.
    """
    how = "in eight bits" if facts.precision == "int8" else "in float32"
    cut = {role: length for role, length in facts.lengths.model_dump().items() if length < UNLIMITED}
    lengths = ", ".join(f"{role} {length}" for role, length in cut.items())
    prompts = ", ".join(f"{role} `{prompt}`" for role, prompt in facts.prompts.items() if prompt)
    parts = [
        f"# {facts.name} as an ONNX graph {how}",
        f"`{facts.model}` takes tokens and gives unit vectors of {facts.dimension} numbers; pooling and normalisation "
        "are in it. The cosine of two texts is the dot product of their vectors. metasearch "
        f"{facts.versions['metasearch']} made it of an encoder with the fingerprint {facts.fingerprint}. In float32 no "
        f"number of a vector differed from the encoder's by more than {facts.difference:.1e}.",
        (f"Texts are truncated at so many tokens: {lengths}." if cut else "Texts are read to their end.")
        + (f" Prompts that stand before them: {prompts}." if prompts else ""),
        f"With Python, by `pip install onnxruntime tokenizers`:\n\n```python\n{EXAMPLE.format(folder='.')}```",
    ]
    return "\n\n".join([*parts, *([f"## Scores\n\n{scores}"] if scores else [])]) + "\n"
