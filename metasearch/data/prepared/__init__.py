"""Prepared corpora: parallel text that was cleaned and tokenised once, in files that are mapped into memory.

    manifest.json                  what the corpus was made of and how, and the names of its shards (`manifest.py`)
    shards/<sha256>.safetensors    texts, tokens and pairs (`shard.py`)
    report.json, report.md         what was left out and why
    held/                          which pairs are held out for dev, found once for each seed (`held.py`)
    work/                          what a preparation that is not finished has done (`blocks.py`)

`corpus.py` reads one; a text of it (`text.py`) knows its tokens. `metasearch.pipelines.prepare` makes one.
"""
