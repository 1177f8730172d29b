"""More scored pairs, labelled by a cross-encoder."""
