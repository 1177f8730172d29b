"""Evaluation: an encoder and data in, scores and the results of every question out."""
