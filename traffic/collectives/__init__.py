"""Collectives as graphs of sends and receives, and the machine that carries out one rank's part of them. PURE."""
