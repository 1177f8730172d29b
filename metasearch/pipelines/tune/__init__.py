"""`metasearch tune`: from labels to the simplest encoder that is not significantly worse than the best one."""
