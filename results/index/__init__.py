"""Index over run folders: the runs, their verdicts, and trends of figures from run to run."""
