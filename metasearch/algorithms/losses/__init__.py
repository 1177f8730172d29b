"""Objectives: functions from embeddings (and gold) to a scalar, each a file here. They see tensors only."""
