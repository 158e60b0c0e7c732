"""LACP in a separate process, which the lab's event loop cannot delay."""
