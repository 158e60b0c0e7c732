"""What can be expected of a run, how it is measured and judged. Pure."""
