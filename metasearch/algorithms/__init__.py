"""Learners turn a meta-batch of episodes into one outer loss; each is a file here, and its name is the file's."""
