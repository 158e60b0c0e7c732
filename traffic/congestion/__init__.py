"""Congestion control of queue pairs: pure state machines, one module each; ``controls`` is the registry. No I/O, no
clock."""
