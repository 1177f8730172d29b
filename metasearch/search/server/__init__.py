"""The web server: a page to search an index with, and its encoder and search as an HTTP interface."""
