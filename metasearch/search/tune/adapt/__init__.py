"""`metasearch adapt`: a query adapter of an index, learned from few labels without encoding a document again."""
