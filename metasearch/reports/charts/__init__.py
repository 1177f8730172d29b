"""Charts as inline SVG, made of elements, each with its values in words and as a table."""
