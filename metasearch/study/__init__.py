"""Cross-validation: every learner, mode, fold and seed as one run in a process of its own."""
