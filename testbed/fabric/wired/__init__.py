"""Fabrics from data: nodes, ports and links with the names of a file, instead of an architecture's numbers."""
