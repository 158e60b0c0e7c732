"""Drills: their files and checks, runs and verdicts, and the library of drills."""
