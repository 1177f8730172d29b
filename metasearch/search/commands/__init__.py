"""The commands `index`, `search`, `adapt`, `serve` and `tune`."""
