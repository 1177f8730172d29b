#!/usr/bin/env bash
# sentence-transformers 6.2.0: encode_document documents that it looks for the prompts `document`, `passage` and `corpus`.
# A model with the prompts `query` and `passage` encodes documents without any: it gives itself the placeholder
# `document: ""`, which is found first, and saves it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0
cd "$work"
HF_HUB_OFFLINE=1 "$work/venv/bin/python" - <<'PY'
import json
import warnings

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

warnings.simplefilter("ignore")
torch.manual_seed(0)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "passage", "query", ":", "the", "key", "is", "here"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained("bert")
size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BertModel(BertConfig(vocab_size=len(words), **size)).save_pretrained("bert")
prompts = {"query": "query: ", "passage": "passage: "}
module = Transformer("bert")
model = SentenceTransformer(modules=[module, Pooling(16)], prompts=prompts, device="cpu")
text = "the key is here"
document = model.encode_document(text, convert_to_tensor=True)
plain, passage = (model.encode(text, prompt=prompt, convert_to_tensor=True) for prompt in ("", "passage: "))
model.save("saved")
stored = json.load(open("saved/config_sentence_transformers.json"))["prompts"]
print("prompts given:", prompts)
print("prompts in the saved folder:", stored)
print("encode_document is encode without a prompt:", torch.allclose(document, plain, atol=1e-6))
print("encode_document is encode with the prompt of passages:", torch.allclose(document, passage, atol=1e-6))
assert stored == {"document": "", **prompts}
assert torch.allclose(document, plain, atol=1e-6)
assert not torch.allclose(document, passage, atol=1e-3)
PY
echo "seen: the passage prompt of a model is not used by encode_document"
