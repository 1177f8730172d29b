"""Pure statistics of paired measurements: intervals, tests, corrections. Never imports torch."""
