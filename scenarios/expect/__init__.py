"""Expectations of a run: how they are measured and judged. Pure."""
