"""Pictures of a fabric: contents, layout, and output as SVG or for Graphviz. Pure."""
