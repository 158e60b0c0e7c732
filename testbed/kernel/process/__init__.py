"""Processes: the sandbox, confined programs, what they may have and how they end."""
