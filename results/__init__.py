"""Verdicts and run folders, and how they are shown: terminal, JUnit, comparison."""
