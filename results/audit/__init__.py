"""Answer of an audit: its rows, text, page, reports for CI, and the comparison with another audit."""
