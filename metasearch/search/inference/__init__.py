"""Encoders that only encode, opened without transformers and sentence-transformers.

A search reads ten rows of the embedding matrix, and imports next to nothing. Such an encoder takes rows out of the file
where they are stored, in their form there, and computes the same bits as the whole model.
"""
