"""Queue pairs as data: who sends to whom, by which source ports, over which paths."""
