"""Search: an index of embeddings, what searches it, and the HTTP server."""
