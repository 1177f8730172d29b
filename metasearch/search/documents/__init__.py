"""Files become passages for a search: plain text, Markdown, HTML, JSON lines and tables. Never imports torch."""
