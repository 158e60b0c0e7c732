"""Collectives as graphs of sends and receives, and the state machine of one rank. PURE."""
