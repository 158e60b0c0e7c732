"""The folder of one run: its location, its files and their formats."""
