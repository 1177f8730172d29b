"""Charts as inline SVG: `lines`, `intervals` and `heatmap` put marks on axes that they share; `svg` draws both."""
