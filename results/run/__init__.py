"""The folder of one run: its files, their place, their formats."""
