"""XLM-R's tokenizer from its pieces, without SentencePiece's table of characters.

SentencePiece normalises with `nmt_nfkc`. That is NFKC but for these characters: some are dropped, some become spaces,
the full-width tilde stays, and marks are not sorted, so that what a shadda stands before stays behind it. Here the last
two are hidden from NFKC behind characters that Unicode leaves unassigned.
"""

from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import PreTrainedTokenizerFast

BOS, PAD, EOS, UNK = range(4)
"""Numbers of the special pieces in XLM-R."""

_DROPPED = r"[\x{1}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
_SPACES = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"
_HIDDEN = {"\uff5e": "\ufdd0", "\u0651": "\ufdd1"}
_SPACE = "▁"
_SPECIAL_TOKENS = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>"}


def tokenizer(pieces: Sequence[tuple[str, float]], longest: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer.

    The class of the library for XLM-R would build its own normaliser anew and lose this one.

    Args:
        pieces: pieces with their log-probabilities, the special ones at the numbers of XLM-R.
        longest: longest input in tokens.
    """
    backend = Tokenizer(Unigram(list(pieces), unk_id=UNK, byte_fallback=False))
    backend.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            *(normalizers.Replace(kept, stand_in) for kept, stand_in in _HIDDEN.items()),
            normalizers.NFKC(),
            *(normalizers.Replace(stand_in, kept) for kept, stand_in in _HIDDEN.items()),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")
    backend.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=longest,
        model_input_names=["input_ids", "attention_mask"],
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        **{f"{role}_token": token for role, token in _SPECIAL_TOKENS.items()},
    )
