"""Tables, charts and pages for study results. Never imports torch."""
