"""Model cards, and how a model is put on a hub. Never imports torch."""
