"""Self-test: measurement of outages of known length."""
