"""Congestion control of queue pairs: pure machines, one module each; ``controls`` is the registry. No I/O, no clock."""
