"""Tables, charts and pages of what studies found. Never imports torch."""
