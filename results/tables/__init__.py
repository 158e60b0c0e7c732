"""Runs as tables for statistics programs: what each table holds, and the files and data frames made of them."""
