"""The model cards of what the commands make."""
