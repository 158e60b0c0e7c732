"""What hpn says of itself: speed (bench) and outages of known length (selftest)."""
