"""Prepared corpora: parallel text, cleaned once and stored in memory-mapped files.

    manifest.json                  what the corpus was made of and how, and the names of its shards (`manifest.py`)
    shards/<sha256>.safetensors    texts and pairs (`shard.py`)
    report.json, report.md         what was left out and why
    lengths/                       tokens of each text, counted once for each tokenizer
    work/                          what a preparation that is not finished has done (`blocks.py`)

`corpus.py` reads one. `metasearch.pipelines.prepare` makes one.
"""
