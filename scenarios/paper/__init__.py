"""Claims of the HPN paper, compared with runs."""
