"""An index over run folders: which runs there are, what they said, and how a figure went from run to run."""
