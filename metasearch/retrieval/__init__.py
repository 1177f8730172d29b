"""Search: an index of embeddings, its searchers, and the HTTP server."""
