"""Suites: many drills on many engines, side by side."""
