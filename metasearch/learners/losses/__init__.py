"""Objectives: pure functions from embeddings (and gold) to a scalar. They see tensors only."""
