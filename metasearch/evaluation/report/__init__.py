"""Tables, charts and pages of the results of studies. Never imports torch."""
