"""Location of faults while a lab runs."""
