"""A lab that runs by itself: supervisor, registry, and access from outside."""
