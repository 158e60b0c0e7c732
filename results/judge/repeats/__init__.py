"""Several runs of one drill with a common verdict."""
