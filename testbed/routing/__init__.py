"""The fabric's control plane: BIRD, ARP to host routes, ECMP settings, path trace, host-switch path control."""
