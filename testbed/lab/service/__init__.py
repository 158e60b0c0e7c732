"""A lab that stands by itself: supervisor, registry, and the ways into it."""
