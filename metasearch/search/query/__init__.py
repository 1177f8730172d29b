"""An encoder and an index together: documents go in, and the passages that answer a question come out."""
