"""BIRD 2: its configuration, its control socket, its log, and the process of one switch."""
