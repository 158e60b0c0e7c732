"""Worker processes: life cycle, messages, and placement of flows."""
