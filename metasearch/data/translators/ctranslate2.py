"""Translations by a model in CTranslate2's form in a local folder, such as one of OPUS-MT, NLLB or M2M-100."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from metasearch.config.base import FrozenConfig, Positive
from metasearch.config.extras import import_extra
from metasearch.config.languages import Language
from metasearch.data.translators.base import Places
from metasearch.errors import DataError, first_line
from metasearch.io import digest, fingerprint_of

_WEIGHTS = "model.bin"
_SHARED = ("sentencepiece.bpe.model", "sentencepiece.model", "spiece.model")
"""Names of a SentencePiece model of both languages; OPUS-MT has one of each, `source.spm` and `target.spm`."""
_BATCH_TOKENS = 2048

Tokens = tuple[Callable[[str], list[str]], Callable[[list[str]], str]]
"""Text → tokens of the source, and tokens of the target → text."""


class CTranslate2:
    """Translates with beam search on the CPU or a GPU; the model is loaded when there is something to translate.

    The folder is what `ct2-transformers-converter` writes, with the tokenizer's files beside it (`--copy_files`):
    `source.spm` and `target.spm`, one SentencePiece model of both, or `tokenizer.json`.
    """

    class Options(FrozenConfig):
        """Model, and tokens around a text.

        Attributes:
            model: its folder, from the folder of the task's file on.
            codes: language of the task → the model's code of it, such as `de: deu_Latn`; by default the same.
            before: tokens before each text, in which `{source}` and `{target}` stand for the codes: `["{source}"]` for
                NLLB, `["__{source}__"]` for M2M-100, `[">>{target}<<"]` for OPUS-MT of several languages.
            after: tokens after each text.
            prefix: tokens with which each translation begins, and which are left out of it: `["{target}"]` for NLLB.
            beam: translations that are followed at a time.
            longest: tokens of a translation, at most; a longer one is an error, and is not cut.
            device: where the model runs.
        """

        model: str
        codes: dict[Language, str] = Field(default_factory=dict)
        before: tuple[str, ...] = ()
        after: tuple[str, ...] = ("</s>",)
        prefix: tuple[str, ...] = ()
        beam: Positive = 4
        longest: Positive = 512
        device: Literal["cpu", "cuda", "auto"] = "cpu"

    kept: ClassVar[bool] = True

    def __init__(self, options: Options, places: Places) -> None:
        self._options, self._folder = options, places.declared / options.model
        if not (self._folder / _WEIGHTS).is_file():
            raise DataError(
                f"{self._folder}: no CTranslate2 model: {_WEIGHTS} is missing; expected the folder of a model"
            )
        self._model: Any = None
        self._tokens: Tokens | None = None

    def fingerprint(self, source: str, target: str) -> str:
        """Return a hash of the folder's files and the options."""
        files = sorted(path for path in self._folder.iterdir() if path.is_file())
        settings = self._options.model_dump_json(exclude={"model", "device"})
        return fingerprint_of([["ctranslate2", settings], *([path.name, digest(path)] for path in files)])

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the highest-scoring translations.

        Raises:
            ConfigError: a package is not installed.
            DataError: the model cannot be loaded, fails, or gives a translation without an end.
        """
        if self._tokens is None:
            self._model, self._tokens = _loaded(self._folder, self._options.device), _tokens(self._folder)
        (cut, joined), options = self._tokens, self._options
        before, prefix = (self._with_codes(words, source, target) for words in (options.before, options.prefix))
        rows = [[*before, *cut(text), *options.after] for text in texts]
        try:
            results = self._model.translate_batch(
                rows,
                target_prefix=[prefix] * len(rows) if prefix else None,
                beam_size=options.beam,
                max_batch_size=_BATCH_TOKENS,
                batch_type="tokens",
                # 0: by default what is longer is cut without a word.
                max_input_length=0,
                max_decoding_length=options.longest,
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"{self._folder}: cannot translate into {target}: {first_line(error)}") from error
        found = [result.hypotheses[0][len(prefix) :] for result in results]
        for text, tokens in zip(texts, found, strict=True):
            if len(tokens) >= options.longest - len(prefix):
                raise DataError(
                    f"{self._folder}: the translation of '{text[:80]}' into {target} does not end within "
                    f"{options.longest} tokens; raise options.longest"
                )
        return [joined(tokens) for tokens in found]

    def _with_codes(self, words: Sequence[str], source: str, target: str) -> list[str]:
        codes = {name: self._options.codes.get(code, code) for name, code in (("source", source), ("target", target))}
        return [word.replace("{source}", codes["source"]).replace("{target}", codes["target"]) for word in words]


def _loaded(folder: Path, device: str) -> Any:
    ctranslate2 = import_extra("ctranslate2", "translate", "translate.by: ctranslate2")
    try:
        return ctranslate2.Translator(str(folder), device=device)
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{folder}: the model cannot be loaded: {first_line(error)}") from error


def _tokens(folder: Path) -> Tokens:
    pair = folder / "source.spm", folder / "target.spm"
    shared = next((folder / name for name in _SHARED if (folder / name).is_file()), None)
    if shared or all(path.is_file() for path in pair):
        return _pieces(*(pair if shared is None else (shared, shared)))
    if (folder / "tokenizer.json").is_file():
        return _tokenizer(folder / "tokenizer.json")
    raise DataError(
        f"{folder}: no tokenizer; expected source.spm and target.spm, one of {', '.join(_SHARED)}, or tokenizer.json"
    )


def _pieces(source: Path, target: Path) -> Tokens:
    sentencepiece = import_extra("sentencepiece", "translate", "translate.by: ctranslate2")
    try:
        models = [sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in (source, target)]
    except (OSError, RuntimeError) as error:
        raise DataError(f"{source.parent}: a SentencePiece model cannot be loaded: {first_line(error)}") from error
    return lambda text: models[0].encode(text, out_type=str), lambda tokens: models[1].decode(tokens)


def _tokenizer(path: Path) -> Tokens:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise DataError(f"{path}: not a tokenizer: {first_line(error)}") from error

    def joined(tokens: list[str]) -> str:
        ids = [number for token in tokens if (number := tokenizer.token_to_id(token)) is not None]
        return str(tokenizer.decode(ids, skip_special_tokens=True))

    return lambda text: tokenizer.encode(text, add_special_tokens=False).tokens, joined


TRANSLATOR = CTranslate2
