"""Exploration: a second fault at every moment of a drill's convergence and return."""
