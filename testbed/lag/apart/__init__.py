"""LACP in a process of its own, which nothing that the lab's event loop does can delay."""
