"""What is read of host and ports while a drill runs."""
