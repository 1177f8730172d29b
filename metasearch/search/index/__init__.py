"""Vectors and their passages on the disk, searched exactly. Knows no encoders and never imports torch."""
