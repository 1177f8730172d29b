"""`metasearch tune`: from labels to the simplest encoder that no other one beats significantly."""
