"""Verdicts and run folders, and their output: terminal, JUnit, comparison."""
