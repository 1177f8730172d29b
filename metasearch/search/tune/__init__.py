"""`metasearch tune`: what labels add to a search, if it is significant."""
