"""Encoding in bfloat16: linear layers converted once, for inference on a CPU.

Normalisation, softmax, residual sums and pooling stay float32. Texts stand in one row without padding. BERT has a
network of its own (`bert`), other transformers are copied and run by transformers (`any_network`).
"""
