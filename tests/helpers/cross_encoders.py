"""A tiny cross-encoder that is made from a configuration."""

import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

from helpers.tokenizers import word_piece


def write_cross_encoder(folder, labels=1, head=True):
    """Write a BERT of two layers with a classifier of some labels, or without one, and return the folder's name."""
    tokenizer = word_piece()
    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "hidden_size": 8}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=24, num_labels=labels, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = (BertForSequenceClassification if head else BertModel)(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    tokenizer.model_max_length = 24
    tokenizer.save_pretrained(folder)
    return str(folder)
