"""The one training loop. It knows no learner and no task by name."""
