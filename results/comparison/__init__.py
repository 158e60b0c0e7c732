"""Comparison of runs: the figures that differ, by how much, and the smallest visible difference."""
