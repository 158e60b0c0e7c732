"""Audit of a fabric: every single failure, and pairs up to a budget, each in a drill of its own."""
