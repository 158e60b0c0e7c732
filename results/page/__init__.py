"""One HTML page per run: what a drill shows, whether it did, and the figures that prove it."""
