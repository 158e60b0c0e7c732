"""Runs held against each other: what differs between them, by how much, and what could have been seen."""
