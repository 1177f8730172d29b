"""Small tokenizers of every kind that transformers has, over a handful of words, and encoders around them."""

import json
import tempfile

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel,
    BertConfig,
    BertTokenizer,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaTokenizer,
    XLMRobertaConfig,
    XLMRobertaTokenizer,
)

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder

WORDS = ["the", "key", "is", "under", "a", "mat", "near", "old", "house", "where", "keys", "and", "houses"]
WORDS += ["are", "never", "unlocked", "by", "night"]
_SHAPE = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "hidden_size": 8}
_NAMES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}


def word_piece():
    """BERT's own class; `[PAD]` stands behind unused tokens, as in no published model."""
    names = ["[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"]
    parts = [word[:4] for word in WORDS] + [f"##{word[4:]}" for word in WORDS if word[4:]]
    letters = [letter for word in WORDS for letter in word]
    names = dict.fromkeys([*names, *parts, *letters, *(f"##{letter}" for letter in letters), "house", "中"])
    return BertTokenizer(vocab={name: number for number, name in enumerate(names)})


def unigram():
    """XLM-R's own class, which builds its model anew from the words."""
    letters = dict.fromkeys(f"▁{''.join(WORDS)}")
    learned = dict.fromkeys([*(f"▁{word[:4]}" for word in WORDS), *(word[2:] for word in WORDS if word[2:]), *letters])
    scored = [(piece, -1.0 - 0.1 * place) for place, piece in enumerate(learned)]
    special = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    return XLMRobertaTokenizer(vocab=[*special, *scored, ("▁中", -9.0), ("中", -30.0), ("<mask>", 0.0)])


def byte_level():
    """RoBERTa's own class: BPE over bytes that are written as letters."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator([" ".join(WORDS)] * 5, trainer)
    model = json.loads(trained.to_str())["model"]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    names = [*special, *sorted(model["vocab"], key=model["vocab"].__getitem__), "<mask>"]
    vocabulary = {name: number for number, name in enumerate(names)}
    return RobertaTokenizer(vocab=vocabulary, merges=[tuple(merge) for merge in model["merges"]])


def added():
    """BPE with marks of continuation and of a word's end, and two tokens that the model itself does not have."""
    names, merges = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>"]), {}
    for word in WORDS:
        symbols = [f"##{letter}" for letter in word[:-1]] + [f"##{word[-1]}."]
        symbols[0] = symbols[0].removeprefix("##")
        names |= dict.fromkeys(symbols)
        made = symbols[0]
        for symbol in symbols[1:]:
            merges[made, symbol] = made + symbol.removeprefix("##")
            made = merges[made, symbol]
            names[made] = None
    vocabulary = {name: number for number, name in enumerate(names)}
    model = models.BPE(
        vocabulary, list(merges), unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="."
    )
    trained = Tokenizer(model)
    trained.pre_tokenizer = pre_tokenizers.Whitespace()
    trained.add_tokens(["KEYHOLE"])
    trained.add_special_tokens(["<mask>"])
    template = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    trained.post_processor = processors.Sequence([template])
    return PreTrainedTokenizerFast(tokenizer_object=trained, cls_token="<s>", sep_token="</s>", **_NAMES)


TOKENIZERS = {"WordPiece": word_piece, "Unigram": unigram, "byte-level BPE": byte_level, "BPE": added}
_CONFIGS = {"WordPiece": BertConfig, "Unigram": XLMRobertaConfig, "byte-level BPE": RobertaConfig, "BPE": RobertaConfig}


def around(kind, extra_rows=3):
    """Return an encoder around a tokenizer of a kind; its word table has some rows more than there are tokens."""
    tokenizer = TOKENIZERS[kind]()
    with torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        config = _CONFIGS[kind](
            vocab_size=len(tokenizer) + extra_rows,
            pad_token_id=tokenizer.pad_token_id,
            max_position_embeddings=40,
            **_SHAPE,
        )
        model = AutoModel.from_config(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=25)
    model = SentenceTransformer(modules=[transformer, Pooling(8, pooling_mode="mean")], device="cpu")
    return Encoder(model, kind, MaxLength(question=30, candidate=30, text=30))
