"""From what a command asks for to the job of a preparation: encoder, files and test sets by name."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metasearch.config import yaml
from metasearch.config.corpus import CorpusSettings
from metasearch.config.languages import normalise_tag, primary_language
from metasearch.config.library import Library
from metasearch.config.recipe import MaxLength
from metasearch.config.run import DataConfig, EncoderConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.data.overlap import TestSet, set_of, set_of_file
from metasearch.data.parallel.files import Part, find
from metasearch.data.prepared.make_shard import Tokeniser, TokenizerFile
from metasearch.data.prepared.manifest import Asked, Input, Manifest, Tokens
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.fingerprint import tokenizer_fingerprint
from metasearch.errors import ConfigError, DataError, EncoderError, nearest
from metasearch.io import digest
from metasearch.pipelines.factory import load_encoder
from metasearch.pipelines.prepare.job import prepare
from metasearch.pipelines.prepare.worker import Job, language_of
from metasearch.runs.callbacks import SILENT, Callback

LENGTH = 128
_SAMPLE = ("", "a", "One sentence, and 2 numbers: 34.", "Ένα. 一二三 ١٢٣ ไทย é", "\ufeffsoft\u00adware", "word " * 600)
"""Texts on which an encoder and its tokenizer alone must agree; the last is longer than most limits."""


def prepare_corpus(
    paths: Sequence[str | Path],
    folder: Path,
    encoder: EncoderConfig | str = "mini",
    settings: Mapping[str, Any] | None = None,
    length: int = LENGTH,
    across: bool = False,
    detect: Sequence[str] = (),
    exclude: Sequence[str] = (),
    data: str | None = None,
    include: Sequence[str] = (),
    processes: int = 1,
    callback: Callback = SILENT,
) -> Manifest:
    """Prepare a parallel corpus for `metasearch distill --corpus`; returns its manifest.

    Args:
        paths: files and folders of parallel text.
        folder: of the corpus; one that was begun in the same way is gone on with.
        encoder: the encoder that is to be trained, or any with its tokenizer.
        settings: keys of `CorpusSettings`, but for those of training.
        length: longest text in tokens.
        across: leave out a pair that another file had before, too.
        detect: leave out pairs of which a side is in another language, told among these; `("all",)` among all.
        exclude: tasks and files whose texts are left out.
        data: folder of the tasks' files.
        include: folders with further tasks.
        processes: that work at the same time.
        callback: hears of the progress.

    Raises:
        ConfigError: a name or a setting is wrong.
        DataError: a file is missing, damaged or has no pair.
        EncoderError: the encoder cannot be loaded, or its tokenizer cannot be used alone.
        RunFolderError: the folder holds another corpus, or cannot be written.
    """
    chosen = yaml.check(dict(settings or {}), CorpusSettings, "settings of the corpus")
    if across and chosen.max_lines:
        raise ConfigError("--dedup-global and --max-lines: which pairs of a file are the first would depend on others")
    files = [Path(path) for path in paths]
    parts, _ = find(files, chosen)
    loaded = load_encoder(encoder, MaxLength(question=length, candidate=length, text=length))
    if chosen.max_tokens >= loaded.limit("text"):
        raise ConfigError(
            f"--max-tokens {chosen.max_tokens}: texts are cut at {loaded.limit('text')} tokens, so that longer ones "
            f"cannot be told; choose a greater --length, which {loaded.name} reads up to {loaded.input.longest}"
        )
    tests = tuple(_test_set(name, data, include) for name in dict.fromkeys(exclude))
    hashes = {test.name: _hash(test) for test in tests}
    if len(hashes) < len(tests):
        twice = next(test.name for i, test in enumerate(tests) if test.name in {each.name for each in tests[:i]})
        raise ConfigError(f"--exclude: two are called '{twice}', which the report could not tell apart; rename a file")
    tokens, tokenizer = _tokens(loaded)
    told = tuple(primary_language(normalise_tag(language)) for language in detect)
    asked = Asked(tokens, chosen, across, told, hashes, _inputs(parts))
    _check_languages(asked, parts)
    return prepare(Job(folder, asked, tokenizer, tests), files, processes, callback)


def _tokens(encoder: Encoder) -> tuple[Tokens, TokenizerFile]:
    """Return how an encoder tokenises texts, and its tokenizer; `EncoderError` where that cannot be done without it."""
    tokenizer: Any = encoder.model[0].tokenizer
    static = not hasattr(tokenizer, "vocab_size")
    backend = tokenizer if static else getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(
            f"{encoder.name}: its tokenizer is not one of the library tokenizers, and runs in no process"
        )
    rows = encoder.tokens(_SAMPLE, "text")
    values = {name: np.unique(np.concatenate([row[i] for row in rows])) for i, name in enumerate(encoder.columns)}
    for name, found in values.items():
        if name != "input_ids" and len(found) != 1:
            raise EncoderError(f"{encoder.name}: its tokenizer gives {name} that differ from token to token")
    columns = {name: None if name == "input_ids" else int(found[0]) for name, found in values.items()}
    file = TokenizerFile(
        backend.to_str(), not static, backend.encode_special_tokens, getattr(tokenizer, "truncation_side", "right")
    )
    if static and encoder.model[0].tokenizer.truncation:
        file = TokenizerFile(file.content, False, file.split, encoder.model[0].tokenizer.truncation["direction"])
    mask = [] if static else backend.encode("a").special_tokens_mask
    after = next((i for i, special in enumerate(reversed(mask)) if not special), 0)
    words = max(backend.get_vocab(with_added_tokens=True).values(), default=0) + 1
    tokens = Tokens(
        encoder.name,
        tokenizer_fingerprint(encoder.model),
        encoder.prompt("text"),
        encoder.limit("text"),
        columns,
        after if file.side == "right" else -1,
        words,
    )
    ids = list(encoder.columns).index("input_ids")
    alone = Tokeniser(file, tokens).ids(_SAMPLE)
    if any(own.tolist() != row[ids].tolist() for own, row in zip(alone, rows, strict=True)):
        raise EncoderError(f"{encoder.name}: its tokenizer gives other tokens alone than in the encoder")
    return tokens, file


def _inputs(parts: Sequence[Part]) -> tuple[Input, ...]:
    found = []
    for path in (path for part in parts for path in part.paths):
        try:
            name = str(path.resolve())
            name.encode()
            found.append(Input(name, path.stat().st_size, digest(path)))
        except UnicodeEncodeError:
            raise DataError(f"{name!r}: the name of the file or of a folder above it is not UTF-8") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    return tuple(found)


def _test_set(name: str, data: str | None, include: Sequence[str]) -> TestSet:
    """Return the texts of a task or of a file."""
    tasks = Library(include).names("task")
    if name in tasks:
        # The folder of the data is that of all tasks; one whose data lies beside it needs none.
        beside = Library(include).task(name).data
        ref = DataConfig(task=name, data=None if beside else data, include=tuple(include))
        return set_of(name, load_benchmark(ref).data)
    if not Path(name).exists():
        raise ConfigError(f"--exclude {name}: neither a file nor a task.{nearest(name, tasks)}")
    return set_of_file(Path(name))


def _hash(test: TestSet) -> str:
    texts = json.dumps([sorted(text for text, _ in texts) for texts in (test.texts, test.passages)])
    return hashlib.sha256(texts.encode()).hexdigest()[:16]


def _check_languages(asked: Asked, parts: Sequence[Part]) -> None:
    """Raise `ConfigError` where languages are to be told, and that of a file cannot be."""
    language_of(asked)
    if not asked.detect:
        return
    from metasearch.data.documents.detect import detector

    for part in parts:
        for language in (part.pivot, part.language):
            plain = primary_language(language)
            if asked.detect == ("all",):
                detector([plain])
            elif plain not in asked.detect:
                raise ConfigError(
                    f"--detect {','.join(asked.detect)}: {part.path} is in {plain}, too; name all languages"
                )
