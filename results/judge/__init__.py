"""The verdict over a run, over repeats, and of outages of known length."""
