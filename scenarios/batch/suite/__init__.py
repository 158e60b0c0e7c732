"""Suites: many drills on many engines, run concurrently."""
