"""Statistics on paired measurements: intervals, tests, corrections. Never imports torch."""
