#!/usr/bin/env bash
# torch 2.13.0 on x86 CPUs with AVX-512: a bfloat16 product compiles a oneDNN kernel for each new number of rows, and
# keeps up to 1,024 of them. 500 products of 500 sizes leave half a gigabyte in memory (a megabyte each, more with AMX),
# although each result is dropped; the same products again add nothing. Text batches have a new size nearly each time,
# so encoding and training grow for a thousand batches. ONEDNN_PRIMITIVE_CACHE_CAPACITY=16, set before, halves it at
# least. float32 keeps nothing, nor do CPUs without AVX-512.
# Output: grown MB, rounded to hundreds, on a Xeon with AMX: first 500, again 0, float32 0; with capacity 16: first 300.
set -euo pipefail
grep -qw avx512bw /proc/cpuinfo || { echo "this CPU has no AVX-512, where torch keeps nothing"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2> /dev/null
cat > "$folder/rows.py" <<'PYTHON'
import re
from pathlib import Path

import torch

torch.set_num_threads(1)


def megabytes():
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def grown(dtype):
    weights, rows = torch.ones(384, 1536, dtype=dtype), torch.ones(1200, 1536, dtype=dtype)
    torch.nn.functional.linear(rows, weights)
    before = megabytes()
    for count in range(100, 1100, 2):
        torch.nn.functional.linear(rows[:count], weights)
    return megabytes() - before


print(f"{grown(torch.bfloat16):.0f} {grown(torch.bfloat16):.0f} {grown(torch.float32):.0f}")
PYTHON
read -r first again plain < <("$folder/venv/bin/python" "$folder/rows.py")
read -r limited _ < <(ONEDNN_PRIMITIVE_CACHE_CAPACITY=16 "$folder/venv/bin/python" "$folder/rows.py")
echo "grown MB: first $first, again $again, float32 $plain; with capacity 16: first $limited"
(( first > 250 && again < 50 && plain < 50 && limited < first * 4 / 5 ))
