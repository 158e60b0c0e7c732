"""The claims of the HPN paper, held against runs."""
