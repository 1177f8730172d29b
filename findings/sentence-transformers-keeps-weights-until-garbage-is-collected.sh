#!/usr/bin/env bash
# sentence-transformers 6.2.0: a model and its model card refer to each other. After `del model` its weights stay in
# memory until Python's cyclic garbage collector runs, which counts objects and not their bytes. Who loads models in
# turn, as for folds, holds two at a time, unless `gc.collect()` is called. The modules alone are freed at once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 2> /dev/null
cat > "$folder/weights.py" <<'PYTHON'
import gc
import weakref

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models


def module():
    return StaticEmbedding(Tokenizer(models.WordLevel({"<unk>": 0, "key": 1}, "<unk>")), embedding_dim=8)


gc.disable()  # so that it runs below alone
alone = module()
weights = weakref.ref(alone.embedding.weight)
del alone
print("module: weights are there after del:", weights() is not None)
model = SentenceTransformer(modules=[module()], device="cpu")
weights = weakref.ref(model[0].embedding.weight)
del model
print("model: weights are there after del:", weights() is not None)
gc.collect()
print("model: weights are there after gc.collect():", weights() is not None)
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" "$folder/weights.py" | tee "$folder/found"
diff "$folder/found" - <<'OUTPUT'
module: weights are there after del: False
model: weights are there after del: True
model: weights are there after gc.collect(): False
OUTPUT
