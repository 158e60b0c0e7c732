"""Processes: the sandbox, confined programs, their limits and their termination."""
