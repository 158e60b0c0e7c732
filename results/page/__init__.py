"""HTML page of a run: the purpose of the drill, its verdict, and the figures that prove it."""
