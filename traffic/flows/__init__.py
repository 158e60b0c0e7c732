"""Queue pairs as data: endpoints, source ports and paths."""
