"""Pictures of a fabric: what is drawn, where it goes, and how it is written as SVG or for Graphviz. Pure."""
