"""Runs as tables for statistics programs: contents of the tables, and their files and data frames."""
