"""Run recipes with several stages: roles, data and dev scores per stage, in one training loop."""
