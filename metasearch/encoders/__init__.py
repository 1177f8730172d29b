"""Sentence encoders: texts in, unit vectors out. They know no dataset, episode or learner."""
